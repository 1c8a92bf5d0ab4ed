"""The best modulo schedule of a turn, by branch and bound: exact, unless a limit is reached.

A unit does one operation at a time. Of two that use it for `p` and `q` clocks, δ apart, some number w of intervals P has

    p  ≤  δ + w · P  ≤  P − q,

so where a schedule has both at once, δ lies between  k · P − q  and  k · P + p  for some k, and every schedule without that
conflict is on one side or on the other. Each side is one more arc. What is relaxed is always the question without some of these
conflicts, whose least interval is that of a circle (`ratio`): a bound of all that lies below. The one of the least bound is
looked at first, so the first schedule without a conflict is the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from heapq import heappop, heappush
from itertools import combinations

from texpr.model.modulo.ratio import Arc, Times, least
from texpr.model.modulo.turn import Turn
from texpr.support.record import Record

LIMIT = 1 << 11
"""The most parts of the search, a part each time that an interval is asked for. Attention takes less than a hundred."""

LATEST = 4
"""Turns of a team within which a turn ends."""


class Bounds(Record):
    """What no schedule is below, in clocks for a turn of a team: `resource`: of the `unit` that is asked for most;
    `recurrence`: of what waits for each other in a circle."""

    resource: Fraction
    unit: str
    recurrence: Fraction

    @property
    def interval(self) -> Fraction:
        """The greater."""
        return max(self.resource, self.recurrence)


class Found(Record):
    """The best schedule. `interval`: clocks from a turn of the stream to the next, which every team's turn takes so many times
    as there are teams. `begins`: of each operation. `parts`: of the search."""

    interval: Fraction
    begins: tuple[Fraction, ...]
    bounds: Bounds
    parts: int

    @property
    def is_bound(self) -> bool:
        """Whether it is as short as the units, or the circles, allow."""
        return self.interval == self.bounds.interval


class _Conflict(Record):
    """Two operations that a unit would do at once, and the arcs that put one, or the other, first."""

    overlap: Fraction
    arcs: tuple[Arc, Arc]


def bounds(turn: Turn) -> Bounds | None:
    """The bounds of a turn; None where it waits for itself, so that there is no schedule."""
    asked = {unit: Fraction(0) for unit in turn.units}
    for each in turn.operations:
        for use in each.uses:
            asked[use.unit] += Fraction(use.clocks, turn.teams if use.own else 1)
    unit = max(asked, key=lambda name: asked[name], default="")
    alone = least(len(turn.operations), _arcs(turn))
    return None if alone is None else Bounds(asked.get(unit, Fraction(0)), unit, alone.interval)


def solve(turn: Turn, limit: int = LIMIT) -> Found | None:
    """The schedule of the least interval; None where there is none, or the search has found none within its limit."""
    low = bounds(turn)
    if low is None:
        return None
    arcs, operations, parts = [*_arcs(turn), *_frame(turn)], len(turn.operations) + 1, 1
    first = least(operations, arcs, low.interval)
    queue = [] if first is None else [_Part(first, 0, 0, arcs)]
    while queue:
        part = heappop(queue)
        found = max(_conflicts(turn, part.times), key=lambda each: each.overlap, default=None)
        if found is None:
            return Found(part.times.interval, part.times.begins[:-1], low, parts)
        if parts >= limit:
            return None
        for arc in found.arcs:
            parts += 1
            then = least(operations, [*part.arcs, arc], part.times.interval)
            if then is not None:
                heappush(queue, _Part(then, part.depth + 1, parts, [*part.arcs, arc]))
    return None


class _Part:
    """A part of the search: its arcs, and what is relaxed of it. Of two of one bound the deeper one comes first."""

    def __init__(self, times: Times, depth: int, number: int, arcs: list[Arc]) -> None:
        self.times, self.depth, self.number, self.arcs = times, depth, number, arcs

    def __lt__(self, other: _Part) -> bool:
        one, another = (self.times.interval, -self.depth, self.number), (other.times.interval, -other.depth, other.number)
        return one < another


def _arcs(turn: Turn) -> list[Arc]:
    return [Arc(each.before, each.after, each.clocks, turn.distance(each)) for each in turn.dependences]


def _frame(turn: Turn) -> Iterator[Arc]:
    """All of a turn begins behind its beginning, which is one more operation, and ends some turns later."""
    begin = len(turn.operations)
    for at, each in enumerate(turn.operations):
        yield Arc(begin, at, 0, 0)
        yield Arc(at, begin, each.clocks, LATEST * turn.teams)


def _conflicts(turn: Turn, times: Times) -> Iterator[_Conflict]:
    """Pairs of operations that one unit would do at once."""
    for (one, first), (other, second) in combinations(enumerate(turn.operations), 2):
        for use in first.uses:
            for using in second.uses:
                if use.unit == using.unit and use.clocks and using.clocks:
                    found = _conflict(one, other, use.clocks, using.clocks, turn.teams if use.own else 1, times)
                    if found is not None:
                        yield found


def _conflict(one: int, other: int, first: int, second: int, turns: int, times: Times) -> _Conflict | None:
    period = times.interval * turns
    apart = times.begins[other] - times.begins[one]
    whole = apart // period
    over, under = first - (apart - whole * period), second - ((whole + 1) * period - apart)
    if over <= 0 and under <= 0:
        return None
    at = int(whole + (under > over)) * turns
    return _Conflict(max(over, under), (Arc(one, other, first, -at), Arc(other, one, second, at)))
