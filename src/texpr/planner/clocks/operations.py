"""A turn of a row as tile operations, of which each statement is one: products, and what lanes do between.

What waits for what follows from the elements that statements read and write: there is one copy of each local of a row, in registers,
so whatever is written waits for those who read what was there, in this turn and in the one before.
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
from texpr.model.turns import Lanes, lanes
from texpr.planner.clocks.turns import Product, instructions_of
from texpr.support.record import Record

MATRIX, ISSUE, THREAD, ENGINE = "matrix", "issue", "warpgroup", "engine"
"""Units: the tensor core; the slots of issue; a warpgroup, which does one thing after the other; the engine that copies."""


class Steps(Record):
    """The statements of a turn, and what each is: `lanes` of those that lanes do, `products` of others, by their columns."""

    loop: ir.Seq
    stmts: tuple[ir.Stmt, ...]
    products: tuple[Sym | None, ...]
    lanes: tuple[Lanes, ...]
    operations: tuple[Operation, ...]
    dependences: tuple[Dependence, ...]

    @property
    def numbers(self) -> range:
        """Of the operations that warpgroups do, or start."""
        return range(len(self.stmts))

    def turn(self, groups: int, blocks: int, apart: bool) -> Turn:
        """For so many warpgroups of so many blocks; `apart`: others copy, so that those of a block do not meet."""
        own = [at for at in self.numbers if any(use.own for use in self.operations[at].uses)]
        meets = [] if apart or not own else [Dependence(own[-1], own[0], self.operations[own[-1]].clocks, 1, together=True)]
        return Turn(self.operations, (*self.dependences, *meets), groups * blocks, groups)


def steps_of(loop: ir.Seq, products: Sequence[Product], strip: int, device: Device) -> Steps | None:
    """The operations of a turn; None where it names values, which no two turns can share."""
    stmts = tuple(stmt for stmt in loop.body if not isinstance(stmt, ir.New))
    if any(isinstance(stmt, ir.Let | ir.Anchor) for stmt in stmts):
        return None
    done = tuple(_lanes(stmt, products, strip) for stmt in stmts)
    operations = tuple(_operation(stmt, products, strip, each, device) for stmt, each in zip(stmts, done, strict=True))
    columns = tuple(None if (found := _product(stmt, products)) is None else found.columns.sym for stmt in stmts)
    return Steps(loop, stmts, columns, done, operations, tuple(_dependences(stmts, operations)))


def _product(stmt: ir.Stmt, products: Sequence[Product]) -> Product | None:
    syms = {s.sym for s in ir.walk((stmt,)) if isinstance(s, ir.Par | ir.Seq)}
    return next((each for each in products if each.columns.sym in syms), None)


def _lanes(stmt: ir.Stmt, products: Sequence[Product], strip: int) -> Lanes:
    return lanes(0.0 if _product(stmt, products) else instructions_of((stmt,), strip / WARP, strip))


def _operation(stmt: ir.Stmt, products: Sequence[Product], strip: int, done: Lanes, device: Device) -> Operation:
    found = _product(stmt, products)
    if found is None:
        clocks = round(done.clocks)
        return Operation(_name(stmt), (Use(ISSUE, round(done.issued)), Use(THREAD, clocks, own=True)), clocks)
    clocks = round(found.amount / (device.matrix.rate(found.dtype).value or 1.0))
    return Operation(_name(stmt), (Use(MATRIX, clocks),), clocks)


def _name(stmt: ir.Stmt) -> str:
    """What it writes."""
    return ", ".join(dict.fromkeys(t.buffer.name for s in ir.walk((stmt,)) if isinstance(s, ir.Bind) for t in s.targets))


def _touched(stmt: ir.Stmt) -> tuple[frozenset[Buffer], frozenset[Buffer]]:
    """What a statement reads, and what it writes."""
    binds = [s for s in ir.walk((stmt,)) if isinstance(s, ir.Bind)]
    read = frozenset(load.buffer for s in ir.walk((stmt,)) for load in loads(s))
    return read, frozenset(target.buffer for s in binds for target in s.targets)


def _dependences(stmts: Sequence[ir.Stmt], operations: Sequence[Operation]) -> Iterator[Dependence]:
    touched = [_touched(stmt) for stmt in stmts]
    for one, (reads, writes) in enumerate(touched):
        for other, (then_read, then_written) in enumerate(touched):
            if writes & (then_read | then_written) or reads & then_written:
                yield Dependence(one, other, operations[one].clocks, int(other <= one))
    own = [at for at, each in enumerate(operations) if any(use.own for use in each.uses)]
    yield from (Dependence(one, other, operations[one].clocks) for one, other in pairwise(own))  # lanes keep to the text
