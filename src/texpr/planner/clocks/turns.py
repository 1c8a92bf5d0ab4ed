"""How long rows take whose products a warpgroup starts: with each waited for at once, or with the last one a turn late.

The parts of a turn are read from the row as it is written: products, and what lanes do between them. Which of it has to come
behind the late product is what touches what that one sums up, or reads of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer
from texpr.isa.cuda import WARPGROUP
from texpr.isa.levels import WARP
from texpr.isa.speed import Device
from texpr.model.plan.operations import instructions
from texpr.model.turns import Lanes, Meet, Part, Start, Wait, lanes, period, special_clocks
from texpr.model.work import Totals
from texpr.planner.nest import NOMINAL
from texpr.relation.facts import in_loop
from texpr.schedule.turns.settled import settled
from texpr.support.record import Record, replace

MEETING = 24.0
"""Instructions by which four lanes that hold a row make one value of theirs."""


NOTHING = Totals()


class Product(Record):
    """A product of a row in a turn: the loop over its columns, multiply-adds of a warpgroup, and what it touches of the row."""

    columns: ir.Loop
    amount: float
    dtype: str
    touched: frozenset[Buffer]


class Turn(Record):
    """The sequential loop of a row with its products inside, in order; instructions of a warp between them: `between` one and
    the next. `ahead`, `behind`: of those behind the first one, what does not have to wait for the last product, of two, where
    that is late, and what has."""

    loop: ir.Seq
    products: tuple[Product, ...]
    between: tuple[Totals, ...]
    ahead: Totals = NOTHING
    behind: Totals = NOTHING

    @property
    def may_be_late(self) -> bool:
        """Whether the last product may go on in the next turn."""
        return len(self.products) == 2

    def parts(self, device: Device, late: bool, apart: bool) -> tuple[Part, ...]:
        """What a warpgroup does in a turn. `apart`: others copy, so it does not meet its block."""
        meets = () if apart else (Meet(),)
        starts = [Start(each.amount / (device.matrix.rate(each.dtype).value or 1.0)) for each in self.products]
        if late:
            one, other = starts
            return (one, other, Wait(1), done(self.ahead, device), Wait(0), done(self.behind, device), *meets)
        waited = [(start, Wait(0), done(each, device)) for start, each in zip(starts, self.between, strict=False)]
        return (*chain(*waited), starts[-1], Wait(0), *meets)

    def clocks(self, device: Device, late: bool, apart: bool, groups: int, blocks: int) -> float:
        """Of a turn of all warpgroups that a multiprocessor holds, by the warpgroup."""
        return period(self.parts(device, late, apart), groups, blocks) / (groups * blocks)


def turn_of(row: ir.Par, products: Sequence[Product], strip: int) -> Turn | None:
    """The loop of a row in which all products are that there are, one behind the other; None where there is none."""
    if len(products) < 2:
        return None
    for loop in (s for s in row.body if isinstance(s, ir.Seq)):
        places = [at for each in products if (at := _place(loop.body, each.columns.sym)) is not None]
        if len(places) < len(products) or sorted({*places}) != places:
            continue
        each = strip / WARP
        before, parts = loop.body[: places[0]], [loop.body[one + 1 : other] for one, other in pairwise(places)]
        parts = [settled_in((*before, *part) if at == 0 else part, loop) for at, part in enumerate(parts)]
        between = [instructions_of(part, each, strip) for part in parts]
        if len(products) > 2:
            return Turn(loop, tuple(products), tuple(between))
        part = parts[0]
        bound = next((at for at, stmt in enumerate(part) if products[-1].touched & {*_touched(stmt)}), len(part))
        ahead, behind = (instructions_of(each_part, each, strip) for each_part in (part[:bound], part[bound:]))
        return Turn(loop, tuple(products), tuple(between), ahead, behind)
    return None


def settled_in(body: Sequence[ir.Stmt], loop: ir.Seq) -> tuple[ir.Stmt, ...]:
    """Statements of a loop one by one, where several are in a loop of their own, as ptxas moves them apart; without the choices
    that tests make which always hold."""
    return tuple(each for stmt in settled(tuple(body), tuple(in_loop(loop.sym, loop.extent))) for each in _apart(stmt))


def _apart(stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
    if isinstance(stmt, ir.Par) and all(isinstance(each, ir.Bind) for each in stmt.body):
        return tuple(replace(stmt, body=(each,)) for each in stmt.body)
    return (stmt,)


def done(found: Totals, device: Device) -> Lanes:
    """What lanes do that takes these instructions of a warp."""
    return lanes(sum(found.values()), special_clocks(found["special"], device))


def _place(body: tuple[ir.Stmt, ...], columns: Sym) -> int | None:
    found = (at for at, stmt in enumerate(body) if any(isinstance(s, ir.Par) and s.sym == columns for s in ir.walk((stmt,))))
    return next(found, None)


def _touched(stmt: ir.Stmt) -> Iterator[Buffer]:
    for each in ir.walk((stmt,)):
        yield from (load.buffer for load in loads(each))
        yield from (target.buffer for target in each.targets) if isinstance(each, ir.Bind) else ()


def instructions_of(body: Iterable[ir.Stmt], each: float, strip: int) -> Totals:
    """Instructions of a warp by unit, of which a statement takes `each`: of a row by itself as many as a lane holds rows, of a
    column as many as lanes have elements."""
    total = Totals()
    for stmt in body:
        match stmt:
            case ir.Par() | ir.Seq():
                many = stmt.extent.constant if stmt.extent.is_constant else NOMINAL
                total.more(instructions_of(stmt.body, strip / WARPGROUP, strip), many)
                total["alu"] += MEETING if stmt.reduce else 0.0
            case ir.Bind():
                found = Totals()
                for value in stmt.values:
                    found.more(instructions(value))
                found["fma"] += stmt.update is not None
                kept = [*stmt.values] == [*stmt.targets]
                found["alu"] += 0.0 if sum(found.values()) or kept else 1.0
                total.more(found, each)
            case ir.Let():
                total.more(instructions(stmt.value), each)
            case ir.If():
                total.more(instructions_of((*stmt.then, *stmt.orelse), each, strip))
            case _:
                pass
    return total
