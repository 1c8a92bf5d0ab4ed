"""Execution counts of program points, and their order: the cost of an operation at a point.

Unknown counts are estimated: a size is 1024, an index half of its loop's extent, an arm of a branch executes every second time.
The estimates only affect the choice among correct results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from texpr.affine.expr import Expr, Sym
from texpr.ir.steps import Branch, Loop, Node, Part, Step, below
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.support.record import Record

OPEN = 1024
"""The assumed value of a run-time size."""


class Trips(Record):
    """The program points `gaps` of one tree, in textual order; how often each list of steps executes; the unit of these
    numbers."""

    gaps: tuple[ProgramPoint, ...]
    often: Mapping[int, Fraction]
    unit: Fraction

    @classmethod
    def of(cls, nodes: tuple[Node, ...]) -> Trips:
        """The counts for the steps `nodes`."""
        often, unit = _trips(nodes)
        return cls(tuple(_in_order(nodes)), often, unit)

    def cost(self, gap: ProgramPoint, weight: int) -> int:
        """The cost of an operation of cost `weight` at a program point, in multiples of `unit`."""
        return int(weight * self.often[gap[0]] / self.unit)


def _in_order(nodes: tuple[Node, ...]) -> list[ProgramPoint]:
    """Every program point, in textual order."""
    every = {id(steps.nodes): steps for steps in lists(nodes)}

    def visit(nodes: tuple[Node, ...]) -> Iterator[ProgramPoint]:
        for at, gap in enumerate(every[id(nodes)].gaps):
            for inner in below(nodes[at - 1]) if at else ():
                yield from visit(inner)
            yield gap

    return list(visit(nodes))


def _trips(nodes: tuple[Node, ...]) -> tuple[dict[int, Fraction], Fraction]:
    """How often each list of steps executes, and the unit of these numbers."""
    every = {id(steps.nodes): steps.number for steps in lists(nodes)}
    found: dict[int, Fraction] = {}

    def visit(nodes: tuple[Node, ...], times: Fraction, index: dict[Sym, int]) -> None:
        found[every[id(nodes)]] = times
        for node in nodes:
            match node:
                case Step():
                    pass
                case Loop(stmt, body):
                    trips = _extent(stmt.extent, index)
                    visit(body, times * trips, {**index, stmt.sym: trips // 2})
                case Part():
                    visit(node.body, times, index)
                case Branch():
                    visit(node.then, times / 2, index)
                    visit(node.orelse, times / 2, index)

    visit(nodes, Fraction(1), {})
    return found, Fraction(1, max(times.denominator for times in found.values()))


def _extent(extent: Expr, index: Mapping[Sym, int]) -> int:
    if extent.is_constant:
        return max(extent.constant, 0)
    try:
        return max(extent.evaluate({sym: index.get(sym, OPEN) for sym in extent.syms()}), 1)
    except ZeroDivisionError:
        return OPEN
