"""Random alterations of a plan, rich ones: most are wrong, some change nothing that counts, and the verifier must know.

Each alteration takes the body of a kernel, or a whole plan, and a source of chance, and gives another, or None where there is
nothing that it could alter. What comes out is well formed, or is thrown away by who asks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias, cast

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.types import BOOL, DTYPES, DType
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value, conjuncts
from texpr.isa.levels import Space
from texpr.support.span import Span

Body: TypeAlias = tuple[k.Stmt, ...]
Spot: TypeAlias = tuple[tuple[tuple[int, int], ...], int]
"""A statement: which statement and which list below it, from outside, and which of the last list."""

VALUES = (Literal, Load, Index, Ref, Op, Cast)
COUNTS = {"mask", "width", "pending", "count", "lanes", "part", "factor"}


def transformed(node: Any, change: Callable[[Any], Any | None]) -> Any:
    """`node` with what `change` gives for a part of it in its place, outermost first; None leaves it as it is."""
    found = change(node)
    if found is not None:
        return found
    if isinstance(node, tuple):
        items = cast("tuple[Any, ...]", node)
        made = tuple(transformed(item, change) for item in items)
        return items if all(a is b for a, b in zip(items, made, strict=True)) else made
    if not is_dataclass(node) or isinstance(node, Buffer | Span | DType | Sym | k.Covered):
        return node
    new = {f.name: transformed(getattr(node, f.name), change) for f in fields(node)}
    changed = any(new[name] is not getattr(node, name) for name in new)
    return replace(cast("Any", node), **new) if changed else node


def parts(node: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    """The parts of `node` that are wanted, in order."""
    found: list[Any] = []

    def see(part: Any) -> None:
        if wanted(part):
            found.append(part)

    transformed(node, see)
    return found


def at_one(node: Any, wanted: Callable[[Any], bool], change: Callable[[Any], Any], rng: random.Random) -> Any:
    """`node` with one of the wanted parts of it changed."""
    count = len(parts(node, wanted))
    if not count:
        return None
    left = iter(range(count))
    chosen = rng.randrange(count)
    return transformed(node, lambda part: change(part) if wanted(part) and next(left) == chosen else None)


def lists(body: Body, path: tuple[tuple[int, int], ...] = ()) -> Iterator[tuple[tuple[tuple[int, int], ...], Body]]:
    """Every list of statements, with the way to it."""
    yield path, body
    for at, stmt in enumerate(body):
        for number, block in enumerate(k.blocks(stmt)):
            yield from lists(block, (*path, (at, number)))


def spots(body: Body) -> list[tuple[Spot, k.Stmt]]:
    """Every statement, with its spot."""
    return [((path, at), stmt) for path, block in lists(body) for at, stmt in enumerate(block)]


def with_list(body: Body, path: tuple[tuple[int, int], ...], change: Callable[[Body], Body]) -> Body:
    """`body` with one list of it changed."""
    if not path:
        return change(body)
    (at, number), *rest = path
    stmt, inner = body[at], tuple(rest)
    if isinstance(stmt, k.For):
        made: k.Stmt = replace(stmt, body=with_list(stmt.body, inner, change))
    elif isinstance(stmt, k.If):
        name = ("then", "orelse")[number]
        made = replace(stmt, **cast("Any", {name: with_list(getattr(stmt, name), inner, change)}))
    else:
        raise ValueError("nothing stands below it")
    return (*body[:at], made, *body[at + 1 :])


def put(body: Body, spot: Spot, *stmts: k.Stmt, drop: int = 0) -> Body:
    """`stmts` at a spot, in place of `drop` of those that stand there."""
    path, at = spot
    return with_list(body, path, lambda block: (*block[:at], *stmts, *block[at + drop :]))


def places(body: Body) -> list[Spot]:
    """Wherever a statement could stand."""
    return [(path, at) for path, block in lists(body) for at in range(len(block) + 1)]


def near(body: Body, spot: Spot, rng: random.Random) -> Spot:
    """A place, a neighbour more often."""
    every = places(body)
    close = [p for p in every if abs(len(p[0]) - len(spot[0])) <= 1 and p[0][:-1] == spot[0][:-1]]
    return rng.choice(close if close and rng.random() < 0.6 else every)


# --- statements -----------------------------------------------------------------------------------------------------------


def swapped(body: Body, rng: random.Random) -> Body | None:
    pairs = [(path, at) for path, block in lists(body) for at in range(len(block) - 1)]
    if not pairs:
        return None
    path, at = rng.choice(pairs)
    return with_list(body, path, lambda b: (*b[:at], b[at + 1], b[at], *b[at + 2 :]))


def moved(body: Body, rng: random.Random) -> Body | None:
    spot, stmt = rng.choice(spots(body))
    count = rng.choice([1, 1, 1, 2])
    path, at = spot
    taken = dict(lists(body))[path][at : at + count]
    left = put(body, spot, drop=len(taken))
    return put(left, near(left, spot, rng), *taken) if stmt else None


def duplicated(body: Body, rng: random.Random) -> Body | None:
    spot, stmt = rng.choice(spots(body))
    return put(body, near(body, spot, rng), stmt)


def dropped(body: Body, rng: random.Random) -> Body | None:
    spot, _ = rng.choice(spots(body))
    return put(body, spot, drop=1)


def unwrapped(body: Body, rng: random.Random) -> Body | None:
    """The statements of a loop or a branch without it."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.If)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    return put(body, spot, *rng.choice(k.blocks(stmt)), drop=1)


def wrapped(body: Body, rng: random.Random) -> Body | None:
    """A statement under a condition, or in a loop, that stands elsewhere."""
    heads = [s for _, s in spots(body) if isinstance(s, k.For | k.If)]
    spot, stmt = rng.choice(spots(body))
    if not heads:
        return None
    head = rng.choice(heads)
    made = replace(head, body=(stmt,)) if isinstance(head, k.For) else replace(head, then=(stmt,), orelse=())
    return put(body, spot, made, drop=1)


def turned(body: Body, rng: random.Random) -> Body | None:
    """A branch with its arms exchanged, its test turned round or weakened."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.If)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    tests = list(conjuncts(stmt.condition))
    made = rng.choice([
        replace(stmt, then=stmt.orelse, orelse=stmt.then),
        replace(stmt, condition=Op("not", (stmt.condition,), BOOL)),
        replace(stmt, condition=rng.choice(tests)),
        replace(stmt, condition=Literal(1, BOOL)),
        replace(stmt, orelse=stmt.then),
        replace(stmt, uniform=not stmt.uniform),
    ])  # fmt: skip
    return put(body, spot, made, drop=1)


# --- loops ----------------------------------------------------------------------------------------------------------------


def fresh(body: Body, base: str) -> Sym:
    """A name that nothing has."""
    taken = {p.name for p in parts(body, lambda p: isinstance(p, Sym))} | {s.name for s in k.symbols(body)}
    return next(Sym(f"{base}_{n}") for n in range(1000) if f"{base}_{n}" not in taken)


def renamed(stmts: Body, names: dict[Sym, Sym]) -> Body:
    """`stmts` with other symbols."""
    values = {old: expr(new) for old, new in names.items()}

    def change(part: Any) -> Any:
        if isinstance(part, Sym):
            return names.get(part)
        return part.substitute(values) if isinstance(part, Expr) else None

    return transformed(stmts, change)


def copied(stmts: Body, body: Body, mark: str) -> Body:
    """`stmts` with their own variables and loops under other names."""
    own = [s.sym for s in k.walk(stmts) if isinstance(s, k.Declare | k.For)]
    own += [s.target for s in k.walk(stmts) if isinstance(s, k.Exchange | k.Shuffle)]
    own += [sym for s in k.walk(stmts) if isinstance(s, k.LoadVector) for sym in s.targets]
    return renamed(stmts, {sym: fresh(body, f"{sym.name}_{mark}") for sym in own})


def at_value(loop: k.For, sym: Sym, value: Expr, mark: str) -> Body:
    """The body of a loop for one value of its index, which may name `sym`."""
    inner = copied(loop.body, (loop,), mark)
    return transformed(inner, lambda p: p.substitute({loop.sym: value}) if isinstance(p, Expr) else None)


def looped(body: Body, rng: random.Random) -> Body | None:
    """A loop split, unrolled by hand, turned round, cut in two, joined with the next, exchanged with the one in it."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.For)]
    if not found:
        return None
    spot, loop = rng.choice(found)
    index, none = DTYPES["i64"], ()

    def guard(value: Expr, then: Body) -> k.If:
        return k.If(Op("lt", (Index(value, index), Index(loop.hi, index)), BOOL), then, none, loop.uniform)

    match rng.randrange(9):
        case 0 | 1:  # by hand, two turns in one
            ends = (loop.hi - loop.lo) % (2 * loop.step)
            next_one = expr(loop.sym) + loop.step
            second = at_value(loop, loop.sym, next_one, "u")
            both = (*loop.body, *(second if ends.is_constant and ends.constant == 0 else (guard(next_one, second),)))
            return put(body, spot, replace(loop, body=both, step=loop.step * 2), drop=1)
        case 2:  # the last one, or the first, behind or before it
            first = replace(loop, lo=loop.lo + loop.step)
            alone = at_value(loop, loop.sym, loop.lo, "p")
            made = (guard(loop.lo, alone), first)
            return put(body, spot, *(made if rng.random() < 0.7 else made[::-1]), drop=1)
        case 3:
            ki, ko = fresh(body, f"{loop.sym.name}_i"), fresh(body, f"{loop.sym.name}_o")
            value = loop.lo + (2 * expr(ko) + ki) * loop.step
            inner = guard(value, at_value(loop, loop.sym, value, "s"))
            turns = (loop.hi - loop.lo + 2 * loop.step - 1) // (2 * loop.step)
            low = replace(loop, sym=ki, lo=expr(0), hi=expr(2), step=expr(1), body=(inner,), kind="serial", reductions=())
            return put(body, spot, replace(low, sym=ko, hi=turns, body=(low,), uniform=loop.uniform), drop=1)
        case 4:
            back = loop.lo + loop.hi - 1 - expr(loop.sym)
            changed = transformed(loop.body, lambda p: p.substitute({loop.sym: back}) if isinstance(p, Expr) else None)
            return put(body, spot, replace(loop, body=changed), drop=1)
        case 5 if len(loop.body) > 1:
            at = rng.randrange(1, len(loop.body))
            return put(body, spot, *(replace(loop, body=b) for b in (loop.body[:at], loop.body[at:])), drop=1)
        case 6 if len(loop.body) == 1 and isinstance(loop.body[0], k.For):
            inside = loop.body[0]
            return put(body, spot, replace(inside, body=(replace(loop, body=inside.body),)), drop=1)
        case 7:
            path, at = spot
            following = dict(lists(body))[path][at + 1 : at + 2]
            if following and isinstance(following[0], k.For):
                other = renamed(following[0].body, {following[0].sym: loop.sym})
                return put(body, spot, replace(loop, body=(*loop.body, *other)), drop=2)
            return None
        case _:
            other = rng.choice([kind for kind in ("serial", "unroll", "simd") if kind != loop.kind])
            made = replace(loop, kind=other) if rng.random() < 0.6 else replace(loop, uniform=not loop.uniform)
            return put(body, spot, made, drop=1)


# --- expressions ----------------------------------------------------------------------------------------------------------


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


def bounded(body: Body, rng: random.Random) -> Body | None:
    """A loop with another begin, end, or step."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.For)]
    if not found:
        return None
    spot, loop = rng.choice(found)
    made = rng.choice([
        replace(loop, lo=loop.lo + 1), replace(loop, lo=loop.lo - loop.step), replace(loop, hi=loop.hi - 1),
        replace(loop, hi=loop.hi + 1), replace(loop, hi=loop.hi + loop.step), replace(loop, step=loop.step * 2),
        replace(loop, step=expr(1)), replace(loop, hi=loop.lo + loop.step),
    ])  # fmt: skip
    return put(body, spot, made, drop=1)


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


def at_value_part(node: Any, wanted: Callable[[Any], bool], change: Callable[[Any], Any], rng: random.Random) -> Any:
    """`node` with one wanted value changed, wherever it stands."""
    count = 0

    def see(part: Any) -> None:
        nonlocal count
        count += wanted(part)

    transformed(node, see)
    if not count:
        return None
    left, chosen = iter(range(count)), rng.randrange(count)
    return transformed(node, lambda part: change(part) if wanted(part) and next(left) == chosen else None)


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
    targets = {id(s.target) for s in k.walk(body) if isinstance(s, k.Store | k.Atomic | k.StoreVector | k.CopyAsync)}
    return at_value_part(body, lambda p: isinstance(p, kind) and id(p) not in targets, change, rng)


# --- memory ---------------------------------------------------------------------------------------------------------------


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
    merged = put(body, spot, k.Assign(b, made.value, made.span), drop=1)
    return renamed(merged, {b: a})


def assigned_elsewhere(body: Body, rng: random.Random) -> Body | None:
    """What is assigned to one register goes to another; or a register becomes one that is assigned."""
    known = registers(body)
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.Assign | k.Declare)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    if isinstance(stmt, k.Declare):
        return put(body, spot, stmt, k.Assign(stmt.sym, stmt.value, stmt.span), drop=1)
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


def barriers(body: Body, rng: random.Random) -> Body | None:
    """A barrier weakened, or one more."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.Barrier)]
    if not found or rng.random() < 0.1:
        return put(body, rng.choice(places(body)), k.Barrier(rng.choice([k.Level.WARP, k.Level.BLOCK])))
    spot, stmt = rng.choice(found)
    if rng.random() < 0.4:
        return put(body, spot, drop=1)
    if rng.random() < 0.5:
        return put(left := put(body, spot, drop=1), near(left, spot, rng), stmt)
    return put(body, spot, replace(stmt, level=k.Level.WARP, lanes=rng.choice([32, 32, 16, 8])), drop=1)


def counted(body: Body, rng: random.Random) -> Body | None:
    """A number of a statement: the mask of an exchange, how many groups are waited for."""
    found = [(spot, s, f.name) for spot, s in spots(body) for f in fields(s) if f.name in COUNTS]
    if not found:
        return None
    spot, stmt, name = rng.choice(found)
    old = getattr(stmt, name)
    new = rng.choice([old + 1, max(0, old - 1), old * 2, old // 2])
    return put(body, spot, replace(stmt, **cast("Any", {name: new})), drop=1)


def atomics(body: Body, rng: random.Random) -> Body | None:
    """An update that nothing interrupts, without that; and the other way round."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.Atomic | k.Store)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    if isinstance(stmt, k.Atomic):
        made: k.Stmt = k.Store(stmt.target, Op(stmt.op, (stmt.target, stmt.value), stmt.target.dtype), stmt.span)
    else:
        value = stmt.value
        if not isinstance(value, Op) or value.args[0] != stmt.target or value.name not in ("add", "max", "min"):
            return None
        made = k.Atomic(stmt.target, value.name, value.args[1], span=stmt.span)
    return put(body, spot, made, drop=1)


BODIES: Sequence[Callable[[Body, random.Random], Body | None]] = (
    swapped, moved, moved, duplicated, dropped, unwrapped, wrapped, turned, looped, looped, reindexed, reindexed, exchanged,
    bounded, revalued, one_register, one_register, assigned_elsewhere, kept, barriers, counted, atomics,
)  # fmt: skip


# --- kernels and plans ----------------------------------------------------------------------------------------------------


def rebuffered(body: Body, old: Buffer, new: Buffer, rng: random.Random, whole: bool) -> Body | None:
    """One array for another: everywhere, or in one place."""

    def wanted(part: Any) -> bool:
        return isinstance(part, Load) and part.buffer is old

    if whole:
        return transformed(body, lambda p: new if p is old else None)
    return at_value_part(body, wanted, lambda load: replace(load, buffer=new), rng)


def one_array(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """One array for another of the same type and rank; or two become one."""
    every = [*kernel.buffers, *(a.buffer for a in kernel.arrays if not a.barrier)]
    used = {id(load.buffer) for load in (*k.memory(kernel.body)[0], *k.memory(kernel.body)[1])}
    pairs = [(a, b) for a in every for b in every if a is not b and a.dtype == b.dtype and a.rank == b.rank and id(b) in used]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    body = rebuffered(kernel.body, b, a, rng, rng.random() < 0.5)
    return None if body is None else replace(kernel, body=body)


def respaced(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """An array in another memory, or a dimension smaller or larger."""
    found = [at for at, a in enumerate(kernel.arrays) if not a.barrier and a.space in (Space.SHARED, Space.LOCAL)]
    if not found:
        return None
    at = rng.choice(found)
    array = kernel.arrays[at]
    if array.buffer.rank and rng.random() < 0.5:
        dim, by = rng.randrange(array.buffer.rank), rng.choice([-1, -1, 1])
        shape = tuple(e + by if n == dim else e for n, e in enumerate(array.buffer.shape))
        new = replace(array.buffer, shape=shape)
        made = replace(array, buffer=new)
        body = transformed(kernel.body, lambda p: new if p is array.buffer else None)
        return replace(kernel, body=body, arrays=(*kernel.arrays[:at], made, *kernel.arrays[at + 1 :]))
    other = Space.LOCAL if array.space is Space.SHARED else Space.SHARED
    made = replace(array, space=other, at=None)
    return replace(kernel, arrays=(*kernel.arrays[:at], made, *kernel.arrays[at + 1 :]))


def axes(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """An axis longer or shorter, or two of them exchanged."""
    at = rng.randrange(len(kernel.axes)) if kernel.axes else 0
    if not kernel.axes:
        return None
    axis = kernel.axes[at]
    if axis.level is k.Level.BLOCK:
        extent = rng.choice([axis.extent // 2, axis.extent - 1, axis.extent + 1])
    else:
        extent = rng.choice([axis.extent - 1, axis.extent + 1, axis.extent // 2])
    return replace(kernel, axes=(*kernel.axes[:at], replace(axis, extent=extent), *kernel.axes[at + 1 :]))


KERNELS: Sequence[Callable[[k.Kernel, random.Random], k.Kernel | None]] = (one_array, one_array, one_array, respaced, axes)


def resteps(steps: tuple[k.HostStep, ...], rng: random.Random) -> tuple[k.HostStep, ...] | None:
    """Launches exchanged, done twice, dropped, moved into or out of a loop of the host."""
    if not steps:
        return None
    loops = [at for at, s in enumerate(steps) if isinstance(s, k.HostLoop)]
    if loops and rng.random() < 0.4:
        at = rng.choice(loops)
        loop = cast("k.HostLoop", steps[at])
        if rng.random() < 0.3:
            return (*steps[:at], replace(loop, extent=loop.extent + rng.choice([1, -1]), together=None), *steps[at + 1 :])
        if at and rng.random() < 0.5:
            return (*steps[: at - 1], replace(loop, steps=(steps[at - 1], *loop.steps), together=None), *steps[at + 1 :])
        inner = resteps(loop.steps, rng)
        return None if inner is None else (*steps[:at], replace(loop, steps=inner, together=None), *steps[at + 1 :])
    at = rng.randrange(len(steps))
    match rng.randrange(4):
        case 0:
            return (*steps[:at], *steps[at + 1 :])
        case 1:
            other = rng.randrange(len(steps) + 1)
            return (*steps[:other], steps[at], *steps[other:])
        case _ if len(steps) > 1:
            a, b = sorted(rng.sample(range(len(steps)), 2))
            made = list(steps)
            made[a], made[b] = made[b], made[a]
            return tuple(made)
        case _:
            return None


def repaired(kernel: k.Kernel, plan: k.Plan) -> k.Kernel:
    """With the memory that it touches among its arguments: which these are, is no bug of interest."""
    read, written = k.memory(kernel.body)
    known = {*plan.params, *plan.results, *plan.workspace}
    used = [b for b in dict.fromkeys(load.buffer for load in (*read, *written)) if b in known and b not in kernel.scalars]
    names = {load.buffer.name for load in written if load.buffer in known}
    mapped = {name for name in kernel.written if name not in {b.name for b in kernel.buffers}}
    return replace(kernel, buffers=tuple(dict.fromkeys((*kernel.buffers, *used))), written=frozenset(names | mapped))


def with_kernel(steps: tuple[k.HostStep, ...], old: k.Kernel, new: k.Kernel) -> tuple[k.HostStep, ...]:
    """`steps` with one kernel for another."""
    made: list[k.HostStep] = []
    for step in steps:
        if isinstance(step, k.Launch):
            made.append(k.Launch(new) if step.kernel is old else step)
        else:
            made.append(replace(step, steps=with_kernel(step.steps, old, new)))
    return tuple(made)


def altered(plan: k.Plan, rng: random.Random) -> tuple[str, k.Plan] | None:
    """`plan` with one alteration, and its name."""
    every = list(dict.fromkeys(k.kernels(plan.steps)))
    if rng.random() < 0.06 or not every:
        steps = resteps(plan.steps, rng)
        return None if steps is None else ("steps", replace(plan, steps=steps))
    kernel = rng.choice([x for x in every for _ in range(1 + len(spots(x.body)))])
    if rng.random() < 0.2 or not kernel.body:
        change = rng.choice(KERNELS)
        made = change(kernel, rng)
        name = change.__name__
    else:
        kind = rng.choice(BODIES)
        body = kind(kernel.body, rng)
        made, name = None if body is None else replace(kernel, body=body), kind.__name__
    if made is None or made is kernel:
        return None
    return name, replace(plan, steps=with_kernel(plan.steps, kernel, repaired(made, plan)))
