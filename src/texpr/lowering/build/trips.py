"""Execution counts of program points, and their order: the cost of an operation at a point.

Unknown counts are estimated: a size is 1024, an index half of its loop's extent. An arm of a branch executes in those
iterations that a test of one loop's index leaves; or every second time, by any other test. The estimates only affect the choice
among correct results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.steps import Branch, Loop, Node, Part, Step, below
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.relation.conditions import condition
from texpr.relation.facts import facts_of
from texpr.support.record import Record

OPEN = 1024
"""The assumed value of a run-time size."""

LEAST = 4
"""The least iterations of a loop of which a test may leave nearly all, or nearly none."""


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

    def visit(nodes: tuple[Node, ...], times: Fraction, index: dict[Sym, int], turns: dict[Sym, int]) -> None:
        found[every[id(nodes)]] = times
        for node in nodes:
            match node:
                case Step():
                    pass
                case Loop(stmt, body):
                    trips = _extent(stmt.extent, index)
                    visit(body, times * trips, {**index, stmt.sym: trips // 2}, {**turns, stmt.sym: trips})
                case Part():
                    visit(node.body, times, index, turns)
                case Branch():
                    share = _share(node, turns)
                    visit(node.then, times * share, index, turns)
                    visit(node.orelse, times * (1 - share), index, turns)

    visit(nodes, Fraction(1), {}, {})
    return found, Fraction(1, max(times.denominator for times in found.values()))


def _share(branch: Branch, turns: Mapping[Sym, int]) -> Fraction:
    """The share of the iterations of a loop in which a test of its index holds, at least one and not all."""
    found = condition(branch.stmt.condition)
    facts = tuple(facts_of((found.formula,))) if found.exact and not branch.is_data else ()
    syms = [sym for fact in facts for sym in fact.syms() if sym in turns]
    if len(facts) != 1 or len(syms) != 1 or turns[syms[0]] < LEAST:
        return Fraction(1, 2)
    (fact,), (sym,) = facts, syms
    step = fact.substitute({sym: expr(sym) + 1}) - fact
    if not step.is_constant or step.constant not in (1, -1):
        return Fraction(1, 2)
    many = turns[sym]
    first = _value(fact.substitute({sym: 0}), {})
    held = many + min(first, 0) if step.constant == 1 else min(first + 1, many)
    return Fraction(min(max(held, 1), many - 1), many)


def _value(value: Expr, index: Mapping[Sym, int]) -> int:
    try:
        return value.evaluate({sym: index.get(sym, OPEN) for sym in value.syms()})
    except ZeroDivisionError:
        return OPEN


def _extent(extent: Expr, index: Mapping[Sym, int]) -> int:
    if extent.is_constant:
        return max(extent.constant, 0)
    return max(_value(extent, index), 1)
