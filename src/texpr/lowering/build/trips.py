"""How often the gaps between steps are passed, and in which order: what anything costs that stands in one.

Where that is open it is estimated: a size counts as 1024, an index as half of its loop, a side of a branch as every other time.
Nothing but the choice among right answers depends on that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from texpr.affine.expr import Expr, Sym
from texpr.ir.steps import Branch, Loop, Node, Step, below
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.support.record import Record

OPEN = 1024
"""What a size counts as that is not known when the kernel is built."""


class Trips(Record):
    """Of one tree: `gaps` in the order of the text, `often` each list of steps runs, and what all of that is a multiple of."""

    gaps: tuple[ProgramPoint, ...]
    often: Mapping[int, Fraction]
    unit: Fraction

    @classmethod
    def of(cls, nodes: tuple[Node, ...]) -> Trips:
        """Those of the steps `nodes`."""
        often, unit = _trips(nodes)
        return cls(tuple(_in_order(nodes)), often, unit)

    def cost(self, gap: ProgramPoint, weight: int) -> int:
        """What `weight` at each passing of a gap comes to, in multiples of `unit`."""
        return int(weight * self.often[gap[0]] / self.unit)


def _in_order(nodes: tuple[Node, ...]) -> list[ProgramPoint]:
    """Every gap, as the text has them."""
    every = {id(steps.nodes): steps for steps in lists(nodes)}

    def visit(nodes: tuple[Node, ...]) -> Iterator[ProgramPoint]:
        for at, gap in enumerate(every[id(nodes)].gaps):
            for inner in below(nodes[at - 1]) if at else ():
                yield from visit(inner)
            yield gap

    return list(visit(nodes))


def _trips(nodes: tuple[Node, ...]) -> tuple[dict[int, Fraction], Fraction]:
    """How often each list of steps runs, and what all of that is a multiple of."""
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
