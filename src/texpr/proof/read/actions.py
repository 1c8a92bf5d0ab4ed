"""The program as actions: for each statement its domain, time, reads and writes.

The time of a statement is a vector: its position among its neighbours, the index of the loop around it, its position there, and
so on. Of two instances the one with the lexicographically smaller vector comes first. Instances that first differ in the index
of a `par` are unordered: the program is legal, so there are no dependences between them, except through buffers that it reduces
into.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr, number_of
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.rewrite import over, substitute_block
from texpr.ir.program.updates import combine
from texpr.ir.value import Buffer, Load, Op, Ref, Value
from texpr.ir.value.types import BOOL
from texpr.presburger.formula import Formula, between, negate
from texpr.proof.read.conditions import test
from texpr.proof.read.tables import Tables, number_in, tables_of
from texpr.support.record import Mutable, Record, derive, field, replace
from texpr.support.span import Span

Time: TypeAlias = tuple["int | ir.Loop", ...]

TESTED, *ARMS = 2, 6, 10
"""The positions of the evaluation of a branch's test, and of its arms, only one of which executes."""


class Spot(Record, eq=False):
    """A position in the program: time, loops, domain, and the tests of data around it, each with its own position."""

    time: Time
    loops: tuple[ir.Loop, ...]
    domain: tuple[Formula, ...]
    tests: tuple[tuple[Value, Spot], ...] = ()


class Action(Record, eq=False):
    """The assignment of one `value` to one element; in an update the value reads the previous contents.

    `stored`: the memory that it writes, a buffer, or the symbol of a `let`.
    """

    spot: Spot
    target: Load | Ref
    value: Value
    update: ir.Update | None
    stmt: ir.Bind | ir.Let
    arms: tuple[Value, ...] = ()
    stored: Buffer | Sym = field(init=False)

    def __post_init__(self) -> None:
        derive(self, stored=self.target.buffer if isinstance(self.target, Load) else self.target.sym)

    @property
    def span(self) -> Span:
        """The position in the source."""
        return self.stmt.span


class Program(Record):
    """A function's actions. `scopes`: the number of loops around the declaration of a buffer or `let`, whose instances they
    index."""

    function: ir.Function
    actions: tuple[Action, ...]
    scopes: dict[Buffer | Sym, int]
    lets: dict[Sym, Action]
    tables: Tables


def named_by(action: Action, args: Iterable[Expr], tables: Tables) -> Expr:
    """The integer that a `let` of the program is at some indices: an element of a table, or a function of its name."""
    own, args = number_in(action.value, tables), tuple(args)
    if own is None:
        assert isinstance(action.stored, Sym), "as it is a `let`"
        return expr(number_of(action.stored.name, args))
    return expr(own).substitute(dict(zip(indices(action.spot), args, strict=True)))


def actions(function: ir.Function) -> Program:
    """The actions of `function`."""
    tables = tables_of(function)
    reader = _Reader({b: 0 for b in (*function.params, *function.results)}, {}, tables)
    found = tuple(reader.block(function.body, Spot((), (), ())))
    return Program(function, found, reader.scopes, reader.lets, tables)


class _Reader(Mutable):
    scopes: dict[Buffer | Sym, int]
    lets: dict[Sym, Action]
    tables: Tables

    def block(self, body: tuple[ir.Stmt, ...], around: Spot) -> Iterator[Action]:
        rest = list(body)
        for at in range(len(rest)):
            stmt = rest[at]
            here = Spot((*around.time, 4 * at), around.loops, around.domain, around.tests)
            match stmt:
                case ir.Par() | ir.Seq():
                    inside = (*here.domain, between(0, stmt.sym, stmt.extent))
                    spot = Spot((*here.time, stmt), (*here.loops, stmt), inside, here.tests)
                    yield from self.block(stmt.body, spot)
                case ir.New():
                    self.scopes.setdefault(stmt.buffer, len(here.loops))
                case ir.Let():
                    if stmt.value.dtype.is_integer:  # index expressions use it as a function of the loop indices
                        own = number_in(stmt.value, self.tables)
                        named = {stmt.sym: number_of(stmt.sym.name, indices(here)) if own is None else own}
                        rest[at + 1 :] = substitute_block(tuple(rest[at + 1 :]), named)
                    self.scopes[stmt.sym] = len(here.loops)
                    action = Action(here, Ref(stmt.sym, stmt.value.dtype), stmt.value, None, stmt)
                    self.lets[stmt.sym] = action
                    yield action
                case ir.Bind():
                    yield from self.bind(stmt, here)
                case ir.If():
                    yield from self.branch(stmt, here)
                case ir.Anchor():
                    pass
                case ir.Instruction():
                    yield from self.block(stmt.body, here)

    def bind(self, stmt: ir.Bind, here: Spot) -> Iterator[Action]:
        values = stmt.values if stmt.update is None else combine(stmt.update, stmt.targets, stmt.values)
        for target, value, arm in zip(stmt.targets, values, stmt.values, strict=True):
            yield Action(here, target, value, stmt.update, stmt, (arm,))

    def branch(self, stmt: ir.If, here: Spot) -> Iterator[Action]:
        """Both arms, and before them the test if it depends on data: a value that may be stored, named like a `let`."""
        found, asked, behind = test(stmt.condition), stmt.condition, replace(here, time=(*here.time, TESTED))
        if found is None:
            asked = Ref(Sym(f"test {len(self.lets)}"), BOOL)
            self.scopes[asked.sym] = len(here.loops)
            self.lets[asked.sym] = Action(here, asked, stmt.condition, None, ir.Let(asked.sym, stmt.condition, stmt.span))
            yield self.lets[asked.sym]
        for arm, body, taken in zip(ARMS, (stmt.then, stmt.orelse), (True, False), strict=True):
            spot = Spot((*here.time, arm), here.loops, here.domain, here.tests)
            if found is None:
                value = asked if taken else Op("not", (asked,), BOOL)
                spot = Spot(spot.time, here.loops, here.domain, (*here.tests, (value, behind)))
            else:
                spot = Spot(spot.time, here.loops, (*here.domain, found if taken else negate(found)), here.tests)
            yield from self.block(body, spot)


def bound(function: ir.Function, plan: k.Plan) -> ir.Function:
    """`function` over the buffers of `plan` with the same name, type and shape."""
    there = {b.name: b for b in (*plan.workspace, *plan.results, *plan.params)}

    def buffer(old: Buffer) -> Buffer:
        new = there.get(old.name)
        alike = new is not None and (new.dtype, new.shape, new.strides) == (old.dtype, old.shape, old.strides)
        return new if new is not None and alike else old

    return function if all(buffer(b) is b for b in ir.buffers(function)) else over(function, buffer)


def frees(action: Action) -> bool:
    """Whether a loop's `reduce` frees the order of an update, and with it the rounding of a product that it adds."""
    return action.update is not None and any(action.stored in loop.reduce for loop in action.spot.loops)


def indices(spot: Spot) -> tuple[Sym, ...]:
    """The indices of the loops around."""
    return tuple(loop.sym for loop in spot.loops)


__all__ = ["Action", "Program", "Spot", "Time", "actions", "expr", "frees", "indices"]
