"""A walk through the loops of a function, one iteration after the other: what runs, at which indices, touching what.

Written for tests: it shares no code with the relations and the domains by which schedules are proved.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping

from texpr.affine.expr import Expr, Sym
from texpr.ir import program as ir
from texpr.ir.value import Index, Load, Op, Value, walk
from texpr.support.record import Record

COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")
}

Step = tuple[ir.Loop, int] | tuple[int, int]
"""On the way to a statement: an iteration of a loop, or a place in a list of statements: which list, and where in it."""


class Touch(Record, dict=True):
    """One access: the buffer's name, the element (None where data decides), and where it is written in the text."""

    buffer: str
    element: tuple[int, ...] | None
    writes: bool
    written: int


class Event(Record, dict=True):
    """A statement run once. `at`: sizes and indices; `path`: the way to it."""

    stmt: ir.Bind
    at: Mapping[Sym, int]
    path: tuple[Step, ...]

    @property
    def loops(self) -> dict[str, int]:
        """The indices of the loops around, by the names that messages use."""
        return {step[0].sym.base: step[1] for step in self.path if isinstance(step[0], ir.Par | ir.Seq)}

    def touches(self) -> Iterator[Touch]:
        """What it reads, then what it writes; an update writes."""
        for value in self.stmt.values:
            yield from (self._touch(load, False) for load in walk(value) if isinstance(load, Load))
        for target in self.stmt.targets:
            yield self._touch(target, True)

    def _touch(self, load: Load, writes: bool) -> Touch:
        index = None if load.data else tuple(e.evaluate(self.at) for e in load.index)
        return Touch(load.buffer.name, index, writes, load.span.start)


def events(
    function: ir.Function, sizes: Mapping[str, int], holds: Callable[[Value, Mapping[Sym, int]], bool | None] | None = None
) -> Iterator[Event]:
    """Every run of every assignment, in order. `holds` decides conditions; both branches of one on data are taken."""
    at = {s: sizes[s.name] for s in function.sizes}
    return _events(function.body, at, (), 0, holds or holding)


def _events(
    body: tuple[ir.Stmt, ...],
    at: Mapping[Sym, int],
    path: tuple[Step, ...],
    block: int,
    holds: Callable[[Value, Mapping[Sym, int]], bool | None],
) -> Iterator[Event]:
    for place, stmt in enumerate(body):
        here = (*path, (block, place))
        match stmt:
            case ir.Par() | ir.Seq():
                for value in range(stmt.extent.evaluate(at)):
                    yield from _events(stmt.body, {**at, stmt.sym: value}, (*here, (stmt, value)), 0, holds)
            case ir.If():
                taken = holds(stmt.condition, at)
                if taken is not False:
                    yield from _events(stmt.then, at, here, 0, holds)
                if taken is not True:
                    yield from _events(stmt.orelse, at, here, 1, holds)
            case ir.Bind():
                yield Event(stmt, at, here)
            case _:
                pass


def holding(condition: Value, at: Mapping[Sym, int]) -> bool | None:
    """Whether a condition on indices holds; None for one on data."""
    match condition:
        case Op("and" | "or" as name, (one, other)):
            sides = (holding(one, at), holding(other, at))
            deciding = name == "or"
            return deciding if deciding in sides else None if None in sides else not deciding
        case Op("not", (one,)):
            inner = holding(one, at)
            return None if inner is None else not inner
        case Op(name, (Index(one), Index(other))) if name in COMPARISONS and _known(one, at) and _known(other, at):
            return COMPARISONS[name](one.evaluate(at), other.evaluate(at))
        case _:
            return None


def _known(value: Expr, at: Mapping[Sym, int]) -> bool:
    return value.syms() <= at.keys()


def order(one: Event, other: Event) -> str:
    """How two runs stand to each other: `first`, `second` (`other` comes first), or `apart`: nothing orders them."""
    for a, b in zip(one.path, other.path, strict=False):
        if a == b:
            continue
        if isinstance(a[0], ir.Par):
            return "apart"
        return "first" if a[1] < b[1] else "second"
    return "apart"
