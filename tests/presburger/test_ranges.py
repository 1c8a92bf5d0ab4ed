"""What is simpler within ranges that comparisons give: equal at every point of a box at which they hold."""

import random
from itertools import product

import pytest

from texpr.affine.expr import Expr, Sym, expr, maximum
from texpr.affine.ranges import EVERYTHING
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, between, holds
from texpr.presburger.solve.ranges import is_below, ranges_of, within
from texpr.presburger.solve.relaxed import flat

X, Y, Z = Sym("x"), Sym("y"), Sym("z")
SIDE = range(-9, 10)


def some_fact(rng: random.Random) -> Formula:
    sym, scale, end = rng.choice([X, Y, Z]), rng.choice([-3, -2, -1, 1, 2, 3]), rng.randint(-9, 9)
    bound = Ge(expr(sym) * scale + end)
    return rng.choice([bound, bound, And((bound, Ge(expr(X) + 5))), Or((bound, Ge(expr(Z) - 2))), Eq(expr(X) - Y + end)])


def some_value(rng: random.Random) -> Expr:
    inner = expr(X) * rng.choice([1, 4, 8]) + expr(Y) * rng.randint(-2, 2) + rng.randint(-4, 4)
    den = rng.choice([2, 4, 8])
    return rng.choice(
        [inner // den, inner % den, inner % den + Z, (inner // den) % den, maximum(inner, expr(Z)), inner % 8 // den]
    )


@pytest.mark.parametrize("seed", range(60))
def test_what_is_simpler_is_equal_where_the_facts_hold(seed: int) -> None:
    rng = random.Random(seed)
    facts, value = [some_fact(rng) for _ in range(rng.randint(1, 5))], some_value(rng)
    simple = within(facts)(value)
    for x, y, z in product(SIDE, repeat=3):
        point = {X: x, Y: y, Z: z}
        if all(holds(fact, point) for fact in facts):
            assert simple.evaluate(point) == value.evaluate(point)


def test_ranges_are_those_of_single_symbols() -> None:
    """Rounded to integers; what is said of a sum, or in one alternative, says nothing of a symbol."""
    facts = (Ge(2 * expr(X) - 3), Ge(7 - 2 * expr(X)), Ge(expr(X) + Y), Or((Ge(expr(Z)), Ge(expr(Z) - 4))))
    assert ranges_of(facts) == {X: (2, 3)}
    assert ranges_of((Ge(expr(Y) - 1),), {Y: expr(Z) + 4}) == {Z: (-3, EVERYTHING[1])}


def test_an_empty_range_says_nothing() -> None:
    assert within((between(3, X, 3),))(expr(X) % 8) is expr(X) % 8
    assert within((between(3, X, 5),))(expr(X) % 8) is expr(X)


@pytest.mark.parametrize("seed", range(60))
def test_what_ranges_keep_below_is_below(seed: int) -> None:
    rng = random.Random(seed)
    facts = [between(rng.randint(-3, 0), sym, rng.randint(1, 9)) for sym in (X, Y, Z)]
    value, size = some_value(rng), expr(rng.randint(1, 12))
    points = [p for x, y, z in product(SIDE, repeat=3) if all(holds(f, p := {X: x, Y: y, Z: z}) for f in facts)]
    if is_below(value, size, ranges_of(flat(facts))):
        assert all(0 <= value.evaluate(point) < size.constant for point in points)


def test_a_remainder_is_below_its_divisor() -> None:
    assert is_below((expr(X) + Y) % 8, expr(8), {}) and not is_below((expr(X) + Y) % 8, expr(7), {})
    assert is_below(expr(X), expr(4), {X: (0, 3)}) and not is_below(expr(X), expr(4), {X: (-1, 3)})
