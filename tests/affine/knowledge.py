"""Ranges and facts at random, and every point that obeys them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from hypothesis import strategies as st

from texpr.affine.expr import IntoExpr, Sym, expr, sym
from texpr.affine.facts import Fact, multiple_of
from texpr.affine.ranges import Range

Box = dict[Sym, tuple[int, int]]
"""Where points are taken from: every end finite."""


@st.composite
def boxes(draw: st.DrawFn, names: str) -> tuple[Box, dict[Sym, Range]]:
    """A box, and ranges that say as much of it or less."""
    box: Box = {}
    ranges: dict[Sym, Range] = {}
    for name in names:
        lo = draw(st.integers(-5, 5))
        hi = lo + draw(st.integers(0, 6))
        box[Sym(name)] = lo, hi
        said: Range = (draw(st.sampled_from([lo, lo, lo - 2, None])), draw(st.sampled_from([hi, hi, hi + 3, None])))
        if draw(st.integers(0, 9)):
            ranges[Sym(name)] = said
    return box, ranges


FACTS = (
    Fact(0, sym("i"), sym("n")),
    Fact(0, sym("j"), sym("n")),
    Fact(sym("j"), sym("i"), None),
    Fact(None, sym("i") + sym("j"), sym("n")),
    Fact(1, sym("n"), None),
    Fact(0, 2 * sym("i") + sym("j"), 3 * sym("n") + 1),
    Fact(-2, sym("i") - sym("n"), sym("j") * 2),
    multiple_of(sym("n"), 4),
    multiple_of(sym("i") + sym("j"), 3),
    Fact(0, sym("j") % 2 - sym("i") % 2, None),
    Fact(None, 3 * (sym("i") % 4) - (sym("n") % 2), 1),
)
facts = st.lists(st.sampled_from(FACTS), max_size=3, unique=True)


def points(box: Box, given: Sequence[Fact]) -> Iterator[dict[Sym, int]]:
    """Every point of `box` that obeys the facts."""
    for values in product(*(range(lo, hi + 1) for lo, hi in box.values())):
        point = dict(zip(box, values, strict=True))
        if all(_obeys(point, fact) for fact in given):
            yield point


def _obeys(point: dict[Sym, int], fact: Fact) -> bool:
    def value(of: IntoExpr) -> int:
        return expr(of).evaluate(point)

    above = fact.lo is None or value(fact.lo) <= value(fact.value)
    return above and (fact.hi is None or value(fact.value) < value(fact.hi))
