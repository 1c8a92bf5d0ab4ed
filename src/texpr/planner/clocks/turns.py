"""How long rows take whose products a warpgroup starts: with each waited for at once, or with the last one a turn late.

The parts of a turn are read from the row as it is written: products, and what lanes do between them. Which of it has to come
behind the late product is what touches what that one sums up, or reads of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer
from texpr.isa.cuda import WARPGROUP
from texpr.isa.levels import WARP
from texpr.isa.speed import Device
from texpr.model.plan.operations import instructions
from texpr.model.turns import Meet, Part, Start, Wait, lanes, period
from texpr.planner.nest import NOMINAL
from texpr.support.record import Record

MEETING = 24.0
"""Instructions by which four lanes that hold a row make one value of theirs."""

UPDATES = {"max": 3.0, "min": 3.0}
"""Instructions of an update that are not one."""


class Product(Record):
    """A product of a row in a turn: the loop over its columns, multiply-adds of a warpgroup, and what it touches of the row."""

    columns: ir.Loop
    amount: float
    dtype: str
    touched: frozenset[Buffer]


class Turn(Record):
    """The sequential loop of a row with two products inside: what lanes do between them before the second may not go on, and
    then; instructions of a warp."""

    loop: ir.Seq
    first: Product
    last: Product
    before: float
    behind: float

    def parts(self, device: Device, late: bool, apart: bool) -> tuple[Part, ...]:
        """What a warpgroup does in a turn. `apart`: others copy, so it does not meet its block."""
        meets = () if apart else (Meet(),)
        one, other = (Start(each.amount / (device.matrix.rate(each.dtype).value or 1.0)) for each in (self.first, self.last))
        before, behind = map(lanes, (self.before, self.behind))
        if late:
            return (one, other, Wait(1), before, Wait(0), behind, *meets)
        return (one, Wait(0), before, behind, other, Wait(0), *meets)

    def clocks(self, device: Device, late: bool, apart: bool, groups: int, blocks: int) -> float:
        """Of a turn of all warpgroups that a multiprocessor holds, by the warpgroup."""
        return period(self.parts(device, late, apart), groups, blocks) / (groups * blocks)


def turn_of(row: ir.Par, products: Sequence[Product], strip: int) -> Turn | None:
    """The loop of a row in which both products are that there are, one behind the other; None where there is none."""
    if len(products) != 2:
        return None
    first, last = products
    for loop in (s for s in row.body if isinstance(s, ir.Seq)):
        places = [_place(loop.body, each.columns.sym) for each in (first, last)]
        if None in places or places[0] == places[1]:
            continue
        (one, other) = (at or 0 for at in places)
        between = loop.body[one + 1 : other]
        bound = next((at for at, stmt in enumerate(between) if last.touched & {*_touched(stmt)}), len(between))
        each = strip / WARP
        before, behind = (*loop.body[:one], *between[:bound]), between[bound:]
        return Turn(loop, first, last, _lanes(before, each, strip), _lanes(behind, each, strip))
    return None


def _place(body: tuple[ir.Stmt, ...], columns: Sym) -> int | None:
    found = (at for at, stmt in enumerate(body) if any(isinstance(s, ir.Par) and s.sym == columns for s in ir.walk((stmt,))))
    return next(found, None)


def _touched(stmt: ir.Stmt) -> Iterator[Buffer]:
    for each in ir.walk((stmt,)):
        yield from (load.buffer for load in loads(each))
        yield from (target.buffer for target in each.targets) if isinstance(each, ir.Bind) else ()


def _lanes(body: Iterable[ir.Stmt], each: float, strip: int) -> float:
    """Instructions of a warp, of which a statement takes `each`: of a row by itself as many as a lane holds rows, of a column
    as many as lanes have elements."""
    total = 0.0
    for stmt in body:
        match stmt:
            case ir.Par() | ir.Seq():
                many = stmt.extent.constant if stmt.extent.is_constant else NOMINAL
                total += many * _lanes(stmt.body, strip / WARPGROUP, strip) + (MEETING if stmt.reduce else 0.0)
            case ir.Bind():
                update = 0.0 if stmt.update is None else UPDATES.get(str(stmt.update), 1.0)
                total += max(1.0, update + sum(sum(instructions(value).values()) for value in stmt.values)) * each
            case ir.Let():
                total += sum(instructions(stmt.value).values()) * each
            case ir.If():
                total += _lanes(stmt.then, each, strip) + _lanes(stmt.orelse, each, strip)
            case _:
                pass
    return total
