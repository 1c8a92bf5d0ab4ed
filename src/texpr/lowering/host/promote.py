"""Keeps an element that a loop updates repeatedly in a local.

Before:                                       After:
    C[i, j] = 0                                   c = 0
    seq K |k| { C[i, j] += A[i, k] }              seq K |k| { c += A[i, k] }
                                                  C[i, j] = c

Only for a `seq` of one thread in which every access of the buffer is to the same element, its subscripts are invariant, and no
enclosing loop reduces into it. A bind directly before the loop becomes the initialisation of the local. Otherwise the element
is loaded: only if each iteration is known to access it, and under a test that the loop has iterations, as the element may be
out of bounds, or another thread's, otherwise. It is not loaded if the loop assigns it before it is read, as it may be
undefined; where that depends on a branch, it is not promoted.

`in_memory` undoes it in a nest whose threads have tiles of points, where elements of other turns would come into one array, or
one array would begin with what another has: neither is provable, as nothing says that an array is fresh in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads, with_blocks
from texpr.ir.program.uses import bound, loads
from texpr.ir.value import Buffer, Index, Load, Op
from texpr.ir.value.types import BOOL, I64
from texpr.lowering.names import Names
from texpr.mapping.distribute import distributes
from texpr.mapping.nest import Nest
from texpr.support.record import replace

_Touch: TypeAlias = Literal["read", "write", "none"]
"""The first access of a buffer: a read or a write."""

_READ: frozenset[_Touch] = frozenset({"read"})
_NONE: frozenset[_Touch] = frozenset({"none"})


def promote(
    body: tuple[ir.Stmt, ...], names: Names, kept: dict[Buffer, Load], met: frozenset[Buffer] = frozenset()
) -> tuple[ir.Stmt, ...]:
    """`body` with repeated updates of one element in a local, outermost loops first; the element of each is added to `kept`.
    `met`: buffers that other threads may access."""
    found: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Seq() if not any(isinstance(s, ir.Par | ir.Instruction) for s in ir.walk(stmt.body)):
                _loop(stmt, found, names, kept, met)
            case ir.Par():
                found.append(replace(stmt, body=promote(stmt.body, names, kept, met | frozenset(stmt.reduce))))
            case ir.Seq():
                found.append(replace(stmt, body=promote(stmt.body, names, kept, met)))
            case ir.If():
                then, orelse = (promote(arm, names, kept, met) for arm in (stmt.then, stmt.orelse))
                found.append(replace(stmt, then=then, orelse=orelse))
            case _:
                found.append(stmt)
    return tuple(found)


def in_memory(nest: Nest, kept: Mapping[Buffer, Load]) -> Nest:
    """`nest` with its elements in memory again where points of a tile would keep them in an array, and have others there in
    each turn of a loop around, or one array goes on with what another has."""
    points = frozenset(each.loop.sym for each in nest.grid if each.points > 1)
    if nest.team > 1 or not points or not distributes(nest.body, points):
        return nest
    moved = (*_turning(nest.body, kept, frozenset()), *_passed_on(nest.body, kept))
    gone = {buffer: kept[buffer] for buffer in moved}
    return replace(nest, body=_put_back(nest.body, gone)) if gone else nest


def _turning(body: tuple[ir.Stmt, ...], kept: Mapping[Buffer, Load], around: frozenset[Sym]) -> Iterator[Buffer]:
    """The locals in `body` whose element depends on a loop around them."""
    for stmt in body:
        inside = around | {stmt.sym} if isinstance(stmt, ir.Seq) else around
        if isinstance(stmt, ir.New) and stmt.buffer in kept and any(e.syms() & around for e in kept[stmt.buffer].index):
            yield stmt.buffer
        for block in ir.blocks(stmt):
            yield from _turning(block, kept, inside)


def _passed_on(body: tuple[ir.Stmt, ...], kept: Mapping[Buffer, Load]) -> Iterator[Buffer]:
    """The locals in `body` of which one begins with what another had of the same element."""
    for stmt in ir.walk(body):
        match stmt:
            case ir.Bind(targets=(Load(buffer=target),), values=(Load(buffer=source),)) if {target, source} <= kept.keys():
                yield from (target, source)
            case _:
                pass


def _put_back(body: tuple[ir.Stmt, ...], gone: Mapping[Buffer, Load]) -> tuple[ir.Stmt, ...]:
    """`body` with elements in place of locals."""

    def load(old: Load) -> Load | None:
        return gone.get(old.buffer)

    def target(old: Load) -> Load:
        moved = replace_loads(old, load)
        assert isinstance(moved, Load)
        return moved

    def without(body: tuple[ir.Stmt, ...], stmt_is: Callable[[ir.Stmt], bool]) -> tuple[ir.Stmt, ...]:
        left = (stmt for stmt in body if not stmt_is(stmt))
        return tuple(with_blocks(stmt, tuple(without(block, stmt_is) for block in ir.blocks(stmt))) for stmt in left)

    body = without(body, lambda stmt: isinstance(stmt, ir.New) and stmt.buffer in gone)
    moved = Rewriter(
        value=lambda v: replace_loads(v, load),
        target=target,
        buffer=lambda b: gone[b].buffer if b in gone else b,
    )
    return without(moved.block(body), _is_nothing)


def _is_nothing(stmt: ir.Stmt) -> bool:
    """Whether it stores an element to itself."""
    return isinstance(stmt, ir.Bind) and stmt.update is None and stmt.targets == stmt.values


def _loop(loop: ir.Seq, found: list[ir.Stmt], names: Names, kept: dict[Buffer, Load], met: frozenset[Buffer]) -> None:
    """Appends `loop`, rewritten, to `found`, whose last statements may be the binds that initialise its elements."""
    before: list[ir.Stmt] = []
    after: list[ir.Stmt] = []
    late: list[ir.Stmt] = []
    surely = _surely_written(loop.body)
    for element in _elements(loop):
        start = _started(found, element)
        first = _first(loop.body, element.buffer) - _NONE
        if element.buffer in met or (start is None and (element.buffer not in surely or len(first) > 1)):
            continue
        own = Load(Buffer(names.name(_title(element.buffer.name)), element.dtype, (), "local", span=element.span), ())
        kept[own.buffer] = element
        store = ir.Bind((element,), (own,), span=loop.span)
        if start is None:
            load = [ir.Bind((own,), (element,), span=loop.span)] if first == _READ else []
            before += [ir.New(own.buffer, span=loop.span), *load]
            late.append(store)
        else:
            given = found[start]
            assert isinstance(given, ir.Bind)
            found[start : start + 1] = [ir.New(own.buffer, span=loop.span), replace(given, targets=(own,))]
            after.append(store)
        loop = replace(loop, body=_into(loop.body, element, own), reduce=_renamed(loop.reduce, element, own))
    inner = replace(loop, body=promote(loop.body, names, kept, met))
    if not before:
        found.extend((inner, *after))
    elif loop.extent.is_constant and loop.extent.constant > 0:
        found.extend((*before, inner, *late, *after))
    else:
        runs = Op("gt", (Index(loop.extent, I64), Index(loop.extent * 0, I64)), BOOL)
        found.append(ir.If(runs, (*before, inner, *late), span=loop.span))
        found.extend(after)


def _title(name: str) -> str:
    return name.lower() if name.lower() != name else f"{name}_own"


def _elements(loop: ir.Seq) -> Iterator[Load]:
    """The elements that the loop updates in place, each the only one of its buffer there."""
    inside = bound(loop.body) | {loop.sym}
    own = {s.buffer for s in ir.walk(loop.body) if isinstance(s, ir.New)}
    touched: dict[Buffer, list[Load]] = {}
    updated: set[Buffer] = set()
    for stmt in ir.walk(loop.body):
        for load in loads(stmt):
            touched.setdefault(load.buffer, []).append(load)
        if isinstance(stmt, ir.Bind):
            reads = {load.buffer for value in stmt.values for load in loads(ir.Let(loop.sym, value))}
            updated |= {t.buffer for t in stmt.targets if stmt.update is not None or t.buffer in reads}
    for buffer in touched:
        first = touched[buffer][0]
        fixed = not first.data and not any(e.syms() & inside for e in first.index)
        scalar = buffer.rank == 0 and buffer.role == "local"
        same = all(load.index == first.index and not load.data for load in touched[buffer])
        if buffer in updated and buffer not in own and fixed and same and not scalar:
            yield first


def _surely_written(body: tuple[ir.Stmt, ...]) -> frozenset[Buffer]:
    """The buffers that every execution of `body` writes."""
    found = {t.buffer for s in body if isinstance(s, ir.Bind) for t in s.targets}
    for stmt in body:
        if isinstance(stmt, ir.Seq) and stmt.extent.is_constant and stmt.extent.constant > 0:
            found |= _surely_written(stmt.body)
    return frozenset(found)


def _first(body: tuple[ir.Stmt, ...], buffer: Buffer) -> frozenset[_Touch]:
    """The possible first accesses of a buffer in `body`, on each path through its branches and loops."""
    found = frozenset[_Touch]()
    for stmt in body:
        match stmt:
            case ir.If():
                asked = any(load.buffer is buffer for load in loads(ir.Let(Sym("condition"), stmt.condition)))
                each = _READ if asked else _first(stmt.then, buffer) | _first(stmt.orelse, buffer)
            case ir.Seq():
                runs = stmt.extent.is_constant and stmt.extent.constant > 0
                each = _first(stmt.body, buffer) | (frozenset[_Touch]() if runs else _NONE)
            case ir.Bind(update=None) if any(t.buffer is buffer for t in stmt.targets):
                reads = [load for value in stmt.values for load in loads(ir.Let(Sym("value"), value))]
                each = _READ if any(load.buffer is buffer for load in reads) else frozenset[_Touch]({"write"})
            case _:
                each = _READ if any(load.buffer is buffer for load in loads(stmt)) else _NONE
        found |= each - _NONE
        if "none" not in each:
            return found
    return found | _NONE


def _started(found: list[ir.Stmt], element: Load) -> int | None:
    """The bind that initialises the element, by its position among those directly before the loop."""
    for at in range(len(found) - 1, -1, -1):
        stmt = found[at]
        if isinstance(stmt, ir.New):
            continue
        if not isinstance(stmt, ir.Bind):
            return None
        mentions = [load for load in loads(stmt) if load.buffer is element.buffer]
        if mentions:
            plain = stmt.update is None and len(stmt.targets) == 1 and len(mentions) == 1
            return at if plain and stmt.targets[0] == element else None
    return None


def _into(body: tuple[ir.Stmt, ...], element: Load, own: Load) -> tuple[ir.Stmt, ...]:
    def load(old: Load) -> Load | None:
        return own if old.buffer is element.buffer else None

    def target(old: Load) -> Load:
        moved = replace_loads(old, load)
        assert isinstance(moved, Load)
        return moved

    return Rewriter(
        value=lambda v: replace_loads(v, load),
        target=target,
        buffer=lambda b: own.buffer if b is element.buffer else b,
    ).block(body)


def _renamed(reduce: tuple[Buffer, ...], element: Load, own: Load) -> tuple[Buffer, ...]:
    return tuple(own.buffer if b is element.buffer else b for b in reduce)
