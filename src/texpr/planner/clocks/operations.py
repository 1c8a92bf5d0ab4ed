"""A turn of a row as tile operations, of which each statement is one: products, and what lanes do between.

What waits for what follows from the elements that statements read and write: there is one copy of each local of a row, in
registers, so whatever is written waits for those who read what was there, in this turn and in the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer
from texpr.isa.levels import WARP
from texpr.isa.speed import Device
from texpr.model.modulo.turn import Dependence, Operation, Turn, Use
from texpr.model.turns import ALONE, ISSUED, Lanes
from texpr.planner.clocks.turns import NOTHING, Product, done, instructions_of, settled_in
from texpr.support.record import Record

MATRIX, ISSUE, SPECIAL, THREAD, ENGINE = "matrix", "issue", "special", "warpgroup", "engine"
"""Units: the tensor core; the slots of issue; those for exponentials; a warpgroup, which does one thing after the other; the
engine that copies."""


class Steps(Record):
    """The statements of a turn in groups, each an operation: `products`, by their columns, and what `lanes` do of others."""

    loop: ir.Seq
    groups: tuple[tuple[ir.Stmt, ...], ...]
    products: tuple[Sym | None, ...]
    lanes: tuple[Lanes, ...]
    operations: tuple[Operation, ...]
    dependences: tuple[Dependence, ...]

    @property
    def numbers(self) -> range:
        """Of all operations."""
        return range(len(self.groups))

    def turn(self, groups: int, blocks: int, apart: bool) -> Turn:
        """For so many warpgroups of so many blocks; `apart`: others copy, so that those of a block do not meet."""
        own = [at for at in self.numbers if self.products[at] is None]
        meets = [] if apart or not own else [Dependence(own[-1], own[0], self.operations[own[-1]].clocks, 1, together=True)]
        return Turn(self.operations, (*self.dependences, *meets), groups * blocks, groups)


def steps_of(loop: ir.Seq, products: Sequence[Product], strip: int, device: Device) -> Steps | None:
    """The operations of a turn; None where it names values, which no two turns can share."""
    stmts = settled_in([stmt for stmt in loop.body if not isinstance(stmt, ir.New)], loop)
    if any(isinstance(stmt, ir.Let | ir.Anchor) for stmt in stmts):
        return None
    groups = tuple(_grouped(stmts, products))
    known = tuple(_product(group, products) for group in groups)
    lanes = tuple(
        done(NOTHING if each is not None else instructions_of(group, strip / WARP, strip), device)
        for group, each in zip(groups, known, strict=True)
    )
    operations = tuple(
        _operation(_name(group), each, work, device) for group, each, work in zip(groups, known, lanes, strict=True)
    )
    columns = tuple(None if each is None else each.columns.sym for each in known)
    return Steps(loop, groups, columns, lanes, operations, tuple(_dependences(groups, columns, operations)))


def _grouped(stmts: Sequence[ir.Stmt], products: Sequence[Product]) -> Iterator[tuple[ir.Stmt, ...]]:
    """Statements by what products they have to do with: those of lanes that have to do with the same, or with none, go with
    what is before them."""
    touched = {stmt: _touched((stmt,)) for stmt in stmts if _product((stmt,), products)}
    group, near_by = list[ir.Stmt](), frozenset[ir.Stmt]()
    for stmt in stmts:
        if stmt in touched:
            yield from (tuple(each) for each in (group, [stmt]) if each)
            group, near_by = [], frozenset[ir.Stmt]()
            continue
        read, written = _touched((stmt,))
        near = frozenset(each for each, (reads, writes) in touched.items() if writes & read or (reads | writes) & written)
        if group and near and near_by and near != near_by:
            yield tuple(group)
            group, near_by = [], frozenset[ir.Stmt]()
        group.append(stmt)
        near_by = near or near_by
    if group:
        yield tuple(group)


def _product(group: Sequence[ir.Stmt], products: Sequence[Product]) -> Product | None:
    syms = {s.sym for s in ir.walk(tuple(group)) if isinstance(s, ir.Par | ir.Seq)}
    return next((each for each in products if each.columns.sym in syms), None)


def _operation(name: str, product: Product | None, work: Lanes, device: Device) -> Operation:
    if product is None:
        clocks, special = round(work.issued * ALONE / ISSUED), round(work.special)  # which goes on beside what follows
        uses = Use(ISSUE, round(work.issued)), Use(SPECIAL, special), Use(THREAD, clocks, own=True)
        return Operation(name, tuple(use for use in uses if use.clocks), clocks)
    clocks = round(product.amount / (device.matrix.rate(product.dtype).value or 1.0))
    return Operation(name, (Use(MATRIX, clocks),), clocks)


def _name(group: Sequence[ir.Stmt]) -> str:
    """What it writes."""
    binds = (s for s in ir.walk(tuple(group)) if isinstance(s, ir.Bind))
    return ", ".join(dict.fromkeys(target.buffer.name for bind in binds for target in bind.targets))


def _touched(group: Sequence[ir.Stmt]) -> tuple[frozenset[Buffer], frozenset[Buffer]]:
    """What statements read, and what they write."""
    every = [*ir.walk(tuple(group))]
    read = frozenset(load.buffer for each in every for load in loads(each))
    return read, frozenset(target.buffer for each in every if isinstance(each, ir.Bind) for target in each.targets)


def _dependences(
    groups: Sequence[Sequence[ir.Stmt]], columns: Sequence[Sym | None], operations: Sequence[Operation]
) -> Iterator[Dependence]:
    touched = [_touched(group) for group in groups]
    for one, (reads, writes) in enumerate(touched):
        for other, (then_read, then_written) in enumerate(touched):
            if writes & (then_read | then_written) or reads & then_written:
                yield Dependence(one, other, operations[one].clocks, int(other <= one))
    own = [at for at, each in enumerate(columns) if each is None]
    yield from (Dependence(one, other, operations[one].clocks) for one, other in pairwise(own))  # lanes keep to the text
