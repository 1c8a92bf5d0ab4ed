"""What facts say of symbols, against enumeration."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Fact, Known
from texpr.affine.ranges import Range

SYMS = tuple(map(Sym, "abc"))
BOX = range(-5, 6)


def a_sum(random: Random) -> Expr:
    total = expr(random.randint(-6, 6))
    for sym in random.sample(SYMS, random.randint(1, 3)):
        total = total + expr(sym) * random.choice((-3, -2, -1, 1, 2, 3))
    return total


def a_range(random: Random) -> Range:
    return random.choice((None, -4, -1, 0)), random.choice((None, 0, 2, 5))


@pytest.mark.parametrize("seed", range(4))
def test_no_point_lies_outside_of_its_symbols_ranges(seed: int) -> None:
    random, narrowed = Random(seed), 0
    for _ in range(120):
        ranges = {sym: a_range(random) for sym in SYMS}
        facts = [a_sum(random) for _ in range(random.randint(1, 4))]
        known = Known(ranges, [Fact(0, fact, None) for fact in facts])
        found = {sym: known.bounds(expr(sym)) for sym in SYMS}
        narrowed += found != ranges
        for values in product(BOX, repeat=len(SYMS)):
            point = dict(zip(SYMS, values, strict=True))
            if all(_lies(point[s], ranges[s]) for s in SYMS) and all(fact.evaluate(point) >= 0 for fact in facts):
                assert all(_lies(point[s], found[s]) for s in SYMS), (ranges, facts, point, found)
    assert narrowed > 60


def _lies(value: int, ends: Range) -> bool:
    lo, hi = ends
    return (lo is None or lo <= value) and (hi is None or value <= hi)


def test_a_symbol_is_bounded_where_all_others_are() -> None:
    a, b, x = map(expr, SYMS)
    free: Range = (None, None)
    assert Known({SYMS[2]: (3, None)}, [Fact(0, a - 2 * x, None)]).bounds(a) == (6, None)
    assert Known({SYMS[2]: (3, None)}, [Fact(0, a + b - 2 * x, None)]).bounds(a) == free
    assert Known({SYMS[1]: (None, 4)}, [Fact(0, 7 - 3 * a + b, None)]).bounds(a) == (None, 3)


def test_what_an_index_is_below_is_positive() -> None:
    a, b, i = map(expr, SYMS)
    ranges: dict[Sym, Range] = {sym: (0, None) for sym in SYMS}
    assert not Known(ranges).positive(a + b)
    assert Known(ranges, [Fact(0, a + b - 1 - i, None)]).positive(a + b)
    assert not Known(ranges, [Fact(0, a + b - i, None)]).positive(a + b)


def test_a_quotient_is_no_less_than_all_but_the_remainder() -> None:
    """Turns of a block below 4 − ⌊(b + 16) / 132⌋ are those of tiles below 512, and of no fewer."""
    block, turn = expr(SYMS[0]), expr(SYMS[1])
    ranges: dict[Sym, Range] = {SYMS[0]: (0, 131), SYMS[1]: (0, None)}
    known = Known(ranges, [Fact(0, turn, 4 - (block + 16) // 132)])
    assert known.nonnegative(511 - block - 132 * turn)
    assert not known.nonnegative(510 - block - 132 * turn)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_proved_of_quotients_holds_everywhere(seed: int) -> None:
    random, proved = Random(seed), 0
    a, b, _ = map(expr, SYMS)
    for _ in range(150):
        ranges: dict[Sym, Range] = {SYMS[0]: (0, random.choice((3, 7))), SYMS[1]: (random.choice((None, 0)), None)}
        size, sign = random.choice((2, 3, 4)), random.choice((-1, 1))
        quotient = (random.choice((-1, 1)) * a + random.randint(0, 5)) // size
        fact = random.randint(0, 4) + sign * quotient - b
        asked = random.randint(-2, 12) + random.choice((-1, 0, 1)) * a - size * b
        if Known(ranges, [Fact(0, fact, None)]).nonnegative(asked):
            proved += 1
            for values in product(range(8), range(-9, 12)):
                point = dict(zip(SYMS, values, strict=False))
                if all(_lies(point[s], ranges[s]) for s in ranges) and fact.evaluate(point) >= 0:
                    assert asked.evaluate(point) >= 0, (ranges, fact, asked, point)
    assert proved > 10
