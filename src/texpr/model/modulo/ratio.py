"""The least interval at which what waits for each other in a circle can go on: the greatest ratio of clocks to turns.

Times t, one for each operation, and an interval p have to satisfy, of each arc,

    t[after] + turns · p  ≥  t[before] + clocks.

For a given p that is a question of longest paths: there are such times unless the arcs of a circle add up to more clocks than
its turns have. The least p is found by going from circle to circle, each of which needs a longer interval than the one before
(Dinkelbach's method for ratios); it is a fraction, and exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from texpr.support.record import Record


class Arc(Record):
    """`after`, so many `turns` later, begins at least so many `clocks` after `before`; both may be negative."""

    before: int
    after: int
    clocks: int
    turns: int


class Times(Record):
    """The least interval, and the earliest beginnings from 0 on at which it is kept."""

    interval: Fraction
    begins: tuple[Fraction, ...]


def least(count: int, arcs: Sequence[Arc], interval: Fraction = Fraction(0)) -> Times | None:
    """The least interval, no less than a given one, and times of so many operations; None where no interval is long enough."""
    while True:
        begins, circle = _longest(count, arcs, interval)
        if not circle:
            return Times(interval, tuple(Fraction(begin, interval.denominator) for begin in begins))
        turns = sum(arc.turns for arc in circle)
        if turns <= 0:
            return None
        interval = Fraction(sum(arc.clocks for arc in circle), turns)


def _longest(count: int, arcs: Sequence[Arc], interval: Fraction) -> tuple[list[int], list[Arc]]:
    """Longest paths from a common beginning, in parts of a clock (Bellman and Ford); or a circle that needs a longer
    interval."""
    scale, turn = interval.denominator, interval.numerator
    weighed = [(arc.before, arc.after, arc.clocks * scale - arc.turns * turn, at) for at, arc in enumerate(arcs)]
    begins, by, last = [0] * count, [-1] * count, -1
    for _ in range(count + 1):
        last = -1
        for before, after, weight, at in weighed:
            if begins[before] + weight > begins[after]:
                begins[after], by[after], last = begins[before] + weight, at, after
        if last < 0:
            return begins, []
    return begins, _circle(last, arcs, by)


def _circle(last: int, arcs: Sequence[Arc], by: Sequence[int]) -> list[Arc]:
    """The circle on the way by which an operation was put off more often than there are operations."""
    for _ in by:
        last = arcs[by[last]].before
    found, at = [arcs[by[last]]], arcs[by[last]].before
    while at != last:
        found.append(arcs[by[at]])
        at = arcs[by[at]].before
    return found
