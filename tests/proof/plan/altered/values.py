"""What statements of a kernel compute, altered: subscripts, operations, registers, and what is read when."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.proof.plan.altered.tree import Body, at_one, fresh, parts, put, renamed, spots, transformed

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.value import Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.types import BOOL, DType
from texpr.support.record import replace


def is_expr(part: Any) -> bool:
    return isinstance(part, Expr)


def reindexed(body: Body, rng: random.Random) -> Body | None:
    """One index expression is another."""
    every = parts(body, is_expr)
    syms = sorted({sym for e in every for sym in e.syms()}, key=str)

    def change(e: Expr) -> Expr:
        own = sorted(e.syms(), key=str)
        choice = rng.randrange(7)
        if own and syms and choice == 0:
            return e.substitute({rng.choice(own): expr(rng.choice(syms))})
        if len(own) > 1 and choice in (1, 2):
            a, b = rng.sample(own, 2)
            return e.substitute({a: expr(b), b: expr(a)})
        if choice == 3:
            return rng.choice(every)
        if own and choice == 4:
            one = rng.choice(own)
            return e.substitute({one: expr(one) + rng.choice([1, -1])})
        if choice == 5:
            return rng.choice([e * 2, e // 2, e % 2, expr(0), 2 - e])
        return e + rng.choice([1, -1, 1, -1, 2, 32])

    return at_one(body, is_expr, change, rng)


def exchanged(body: Body, rng: random.Random) -> Body | None:
    """Two index symbols for each other in one statement, or in all."""
    spot, stmt = rng.choice(spots(body))
    whole = rng.random() < 0.2
    syms = sorted({sym for e in parts(body if whole else stmt, is_expr) for sym in e.syms()}, key=str)
    if len(syms) < 2:
        return None
    a, b = rng.sample(syms, 2)
    values = {a: expr(b), b: expr(a)}

    def change(part: Any) -> Any:
        return part.substitute(values) if isinstance(part, Expr) else None

    return transformed(body, change) if whole else put(body, spot, transformed(stmt, change), drop=1)


BARRIERS = k.BarrierInit | k.BarrierExpect | k.BarrierArrive | k.BarrierWait
VALUES = (Literal, Load, Index, Ref, Op, Cast)


def is_value(part: Any) -> bool:
    return isinstance(part, VALUES)


def everywhere(node: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    """All values of `node` that are wanted, those in values, too."""
    found: list[Any] = []
    for value in parts(node, is_value):
        found += [value] if wanted(value) else []
        below = value.args if isinstance(value, Op) else (value.arg,) if isinstance(value, Cast) else ()
        found += [each for arg in below for each in everywhere(arg, wanted)]
    return found


OTHER = {"add": "sub", "sub": "add", "mul": "add", "max": "min", "min": "max", "lt": "le", "le": "lt", "ge": "gt", "gt": "ge",
         "eq": "ne", "ne": "eq", "and": "or", "or": "and"}  # fmt: skip


def revalued(body: Body, rng: random.Random) -> Body | None:
    """One value is another of its type, from elsewhere; or another operation, or its operands are exchanged."""
    leaves = [v for v in everywhere(body, lambda v: isinstance(v, Load | Ref | Literal))]

    def change(value: Value) -> Value:
        if isinstance(value, Op) and len(value.args) >= 2:
            if value.name in OTHER and rng.random() < 0.5:
                return replace(value, name=OTHER[value.name])
            return replace(value, args=(*value.args[:-2], value.args[-1], value.args[-2]))
        if isinstance(value, Literal) and rng.random() < 0.7:
            return replace(value, value=value.value + 1) if value.dtype != BOOL else replace(value, value=1 - value.value)
        same = [v for v in leaves if v.dtype == value.dtype]
        return rng.choice(same) if same else value

    kind = rng.choice([(Op,), (Load, Ref, Literal), (Load, Ref)])
    kinds = k.Store | k.Atomic | k.StoreVector | k.CopyAsync | k.CopyTensor | k.CopyBulk
    targets = {id(s.target) for s in k.walk(body) if isinstance(s, kinds)}  # which are places, and so is what is copied
    targets |= {id(s.source) for s in k.walk(body) if isinstance(s, k.CopyAsync | k.CopyBulk | k.StoreTensor | k.LoadVector)}
    targets |= {id(s.barrier) for s in k.walk(body) if isinstance(s, k.CopyTensor | BARRIERS)}
    return at_one(body, lambda p: isinstance(p, kind) and id(p) not in targets, change, rng)


def registers(body: Body) -> dict[Sym, DType]:
    return {s.sym: s.dtype for s in k.walk(body) if isinstance(s, k.Declare)}


def one_register(body: Body, rng: random.Random) -> Body | None:
    """One register for another, in one place, or everywhere."""
    known = registers(body)
    pairs = [(a, b) for a in known for b in known if a is not b and known[a] == known[b]]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    if rng.random() < 0.5:
        found = [spot for spot, s in spots(body) if b in k.symbols((s,)) and not isinstance(s, k.For | k.If)]
        if not found:
            return None
        spot = rng.choice(found)
        stmt = dict(spots(body))[spot]
        declared = isinstance(stmt, k.Declare) and stmt.sym is b
        return None if declared else put(body, spot, *renamed((stmt,), {b: a}), drop=1)
    (spot, made), *_ = [(spot, s) for spot, s in spots(body) if isinstance(s, k.Declare) and s.sym is b]
    merged = put(body, spot, k.Assign(b, made.value, span=made.span), drop=1)
    return renamed(merged, {b: a})


def assigned_elsewhere(body: Body, rng: random.Random) -> Body | None:
    """What is assigned to one register goes to another; or a register becomes one that is assigned."""
    known = registers(body)
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.Assign | k.Declare)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    if isinstance(stmt, k.Declare):
        return put(body, spot, stmt, k.Assign(stmt.sym, stmt.value, span=stmt.span), drop=1)
    same = [sym for sym, dtype in known.items() if dtype == stmt.value.dtype]
    return put(body, spot, replace(stmt, sym=rng.choice(same)), drop=1) if same else None


def kept(body: Body, rng: random.Random) -> Body | None:
    """An element is read once, to a register, and used from there; maybe too early, or too long."""
    found = [(spot, s) for spot, s in spots(body) if not isinstance(s, k.For | k.If | k.Shuffle | k.LoadVector | k.Exchange)]
    found = [(spot, s) for spot, s in found if everywhere(s, lambda v: isinstance(v, Load) and not v.data)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    loads = everywhere(stmt, lambda v: isinstance(v, Load) and not v.data)
    if isinstance(stmt, k.Store | k.Atomic):
        loads = everywhere(stmt.value, lambda v: isinstance(v, Load) and not v.data)
    if not loads:
        return None
    load, name = rng.choice(loads), fresh(body, "kept")
    ref = Ref(name, load.dtype)
    new = stmt
    if isinstance(stmt, k.Store | k.Declare | k.Assign | k.Atomic):
        new = replace(stmt, value=transformed(stmt.value, lambda p: ref if p == load else None))
    path, at = spot
    left = put(body, spot, new, drop=1)
    return put(left, (path, rng.randint(max(0, at - 3), at)), k.Declare(name, load.dtype, load))


def atomics(body: Body, rng: random.Random) -> Body | None:
    """An update that nothing interrupts, without that; and the other way round."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.Atomic | k.Store)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    if isinstance(stmt, k.Atomic):
        made: k.Stmt = k.Store(stmt.target, Op(stmt.op, (stmt.target, stmt.value), stmt.target.dtype), span=stmt.span)
    else:
        value = stmt.value
        if not isinstance(value, Op) or value.args[0] != stmt.target or value.name not in ("add", "max", "min"):
            return None
        made = k.Atomic(stmt.target, value.name, value.args[1], span=stmt.span)
    return put(body, spot, made, drop=1)
