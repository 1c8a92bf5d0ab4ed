"""An element that a loop updates again and again lives in a register meanwhile.

Before:                                     After:
    C[i, j] = 0                                 c = 0
    for k: C[i, j] = C[i, j] + A[i, k]          for k: c = c + A[i, k]
                                                C[i, j] = c

Only where every access of the buffer in the loop is to the same element, no symbol of its index is bound in the loop, and no
barrier or atomic lies inside. A store just before the loop gives the register its first value; otherwise it is loaded, and the
whole stands under a test that the loop runs at all, as the element may not be there else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.rewrite import map_value
from texpr.ir.types import BOOL, I32
from texpr.ir.value import Buffer, Index, Load, Op, Ref, Value
from texpr.lowering.names import Names


def promote(body: tuple[k.Stmt, ...], names: Names) -> tuple[k.Stmt, ...]:
    """`body` with repeated updates of one element kept in a register, outermost loops first."""
    found: list[k.Stmt] = []
    for stmt in body:
        match stmt:
            case k.For() if stmt.kind != "simd":
                _loop(stmt, found, names)
            case k.For():
                found.append(replace(stmt, body=promote(stmt.body, names)))
            case k.If():
                found.append(replace(stmt, then=promote(stmt.then, names), orelse=promote(stmt.orelse, names)))
            case _:
                found.append(stmt)
    return tuple(found)


def _loop(loop: k.For, found: list[k.Stmt], names: Names) -> None:
    """Appends `loop`, rewritten, to `found`, whose last statements may be the stores that start its elements."""
    after: list[k.Stmt] = []
    guarded: list[k.Stmt] = []
    for element in _elements(loop):
        register = Ref(names.sym(element.buffer.name), element.dtype)
        start = _started(found, element)
        if start is None:
            guarded.append(k.Declare(register.sym, register.dtype, element, loop.span))
        else:
            stored = found[start]
            assert isinstance(stored, k.Store)
            found[start] = k.Declare(register.sym, register.dtype, stored.value, stored.span)
        loop = replace(loop, body=_in_register(loop.body, element.buffer, register))
        after.append(k.Store(element, register, loop.span))
    whole = (*guarded, replace(loop, body=promote(loop.body, names)))
    if not guarded or _runs(loop):
        found.extend((*whole, *after))
    else:
        test = Op("lt", (Index(loop.lo, I32), Index(loop.hi, I32)), BOOL)
        started = [s for s in after if isinstance(s, k.Store) and not any(_declares(g, s) for g in guarded)]
        inside = [s for s in after if s not in started]
        found.append(k.If(test, (*whole, *inside), span=loop.span))
        found.extend(started)


def _declares(stmt: k.Stmt, store: k.Store) -> bool:
    return isinstance(stmt, k.Declare) and isinstance(store.value, Ref) and stmt.sym == store.value.sym


def _runs(loop: k.For) -> bool:
    return loop.lo.is_constant and loop.hi.is_constant and loop.lo.constant < loop.hi.constant


def _elements(loop: k.For) -> list[Load]:
    """Elements that the loop updates in place, each the only one of its buffer there."""
    bound = {loop.sym}
    for stmt in k.walk(loop.body):
        match stmt:
            case k.For() | k.Declare():
                bound.add(stmt.sym)
            case k.Exchange():
                bound.add(stmt.target)
            case k.Barrier() | k.Atomic():
                return []
            case _:
                pass
    read, written = k.memory(loop.body)
    targets: dict[Buffer, Load] = {}
    for load in written:
        targets.setdefault(load.buffer, load)
    kept: list[Load] = []
    for buffer, target in targets.items():
        same = all(_same(target, other) for other in (*read, *written) if other.buffer is buffer)
        updated = any(other.buffer is buffer for other in read)
        changing = bound | _assigned(loop.body)
        if same and updated and not target.data and not any(e.syms() & changing for e in target.index):
            kept.append(target)
    return kept


def _assigned(body: tuple[k.Stmt, ...]) -> set[Sym]:
    return {s.sym for s in k.walk(body) if isinstance(s, k.Assign)}


def _same(one: Load, other: Load) -> bool:
    return one.buffer is other.buffer and one.index == other.index and one.data == other.data


def _started(found: list[k.Stmt], element: Load) -> int | None:
    """Where, among the stores that directly precede the loop, the element gets its value."""
    for at in range(len(found) - 1, -1, -1):
        stmt = found[at]
        if not isinstance(stmt, k.Store | k.Declare):
            return None
        if isinstance(stmt, k.Store):
            if _same(stmt.target, element):
                return at
            if stmt.target.buffer is element.buffer:
                return None
        read, _ = k.memory((stmt,))
        if any(load.buffer is element.buffer for load in read):
            return None
    return None


def _in_register(body: tuple[k.Stmt, ...], buffer: Buffer, register: Ref) -> tuple[k.Stmt, ...]:
    def value(old: Value) -> Value:
        return map_value(old, lambda node: register if isinstance(node, Load) and node.buffer is buffer else None)

    def each(stmt: k.Stmt) -> k.Stmt:
        match stmt:
            case k.For():
                return replace(stmt, body=_in_register(stmt.body, buffer, register))
            case k.If():
                then, orelse = (_in_register(b, buffer, register) for b in (stmt.then, stmt.orelse))
                return replace(stmt, condition=value(stmt.condition), then=then, orelse=orelse)
            case k.Declare() | k.Assign():
                return replace(stmt, value=value(stmt.value))
            case k.Store() if stmt.target.buffer is buffer:
                return k.Assign(register.sym, value(stmt.value), stmt.span)
            case k.Store():
                return replace(stmt, value=value(stmt.value), target=_target(stmt.target, value))
            case k.Atomic() | k.Barrier() | k.Exchange():
                return stmt

    return tuple(each(stmt) for stmt in body)


def _target(target: Load, value: Callable[[Value], Value]) -> Load:
    return replace(target, data=tuple((sym, value(meaning)) for sym, meaning in target.data)) if target.data else target
