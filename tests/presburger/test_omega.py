"""Elimination against isl, against enumeration, and on the questions that a compiler asks."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from texpr.affine.expr import Expr, Sym, expr, maximum, minimum
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, between, compare, conj, disj, holds
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import NotAffine
from texpr.presburger.points import Points
from texpr.presburger.solve.omega import System

SYMS = tuple(map(Sym, "abcdef"))
A, B, C, D, E, F = map(expr, SYMS)


def a_value(random: Random, count: int, most: int) -> Expr:
    total = expr(random.randint(-3 * most, 3 * most))
    for sym in random.sample(SYMS[:count], random.randint(1, min(count, 3))):
        total = total + expr(sym) * random.choice((-1, 1, 2, -3, random.randint(-most, most)))
    return total


def an_expression(random: Random, count: int, most: int) -> Expr:
    value, other = a_value(random, count, most), a_value(random, count, 2)
    match random.randrange(12):
        case 0 | 1:
            return value + other // random.randint(2, 7)
        case 2:
            return value + other % random.randint(2, 7)
        case 3:
            return value + minimum(other, a_value(random, count, 2)) * random.choice((1, -1))
        case 4:
            return value + maximum(other, a_value(random, count, 2)) * random.choice((1, -1))
        case _:
            return value


def a_formula(random: Random, count: int, most: int, depth: int = 2) -> Formula:
    if depth == 0 or random.random() < 0.6:
        return random.choice((Eq, Ge, Ge))(an_expression(random, count, most))
    parts = [a_formula(random, count, most, depth - 1) for _ in range(random.randint(2, 3))]
    return random.choice((conj, disj))(parts)


def a_question(random: Random) -> tuple[Formula, Formula]:
    count, most = random.randint(1, 6), random.choice((1, 2, 5, 17))
    parts = [a_formula(random, count, most) for _ in range(random.randint(1, 6))]
    parts += [between(0, s, random.choice((3, 16, 40))) for s in SYMS[:count] if random.random() < 0.6]
    return conj(parts), a_formula(random, count, most)


@pytest.mark.parametrize("part", range(6))
def test_isl_agrees_with_every_answer(part: int) -> None:
    random, answered, asked = Random(part), 0, 0
    for _ in range(300):
        formula, also = a_question(random)
        system = System(formula)
        for more in (TRUE, also):
            found = system.is_empty(more)
            asked, answered = asked + 1, answered + (found is not None)
            if found is not None:
                assert found == Set.of((), conj((formula, more))).is_empty(), conj((formula, more))
    assert answered > 0.95 * asked


@pytest.mark.parametrize("part", range(4))
def test_enumeration_agrees_in_a_box(part: int) -> None:
    random = Random(100 + part)
    for _ in range(120):
        inside = conj([between(-3, s, 5) for s in SYMS[:3]])
        formula = conj([inside, *(a_formula(random, 3, 4) for _ in range(random.randint(1, 4)))])
        found = System(formula).is_empty()
        if found is not None:
            points = product(range(-3, 5), repeat=3)
            some = any(holds(formula, dict(zip(SYMS[:3], point, strict=True))) for point in points)
            assert found == (not some), formula


def test_every_equation_of_two_symbols_with_small_coefficients() -> None:
    """Those without a coefficient of 1 are solved by Euclid's algorithm."""
    for a, b, c in product(range(-7, 8), range(-7, 8), range(-6, 7)):
        box = conj((between(0, SYMS[0], 6), between(0, SYMS[1], 6)))
        some = any(a * x + b * y == c for x, y in product(range(6), repeat=2))
        assert System(conj((compare("==", A * a + B * b, c), box))).is_empty() in (not some, None), (a, b, c)


def test_every_gap_between_two_bounds() -> None:
    """The dark shadow: whether an integer x has 3 · y + low ≤ a · x and b · x ≤ 3 · y + low + wide, for some y < 3."""
    undecided = asked = 0
    for a, b, low, wide in product(range(1, 8), range(1, 8), range(-5, 6), range(9)):
        bounds = compare(">=", A * a, B * 3 + low), compare("<=", A * b, B * 3 + low + wide)
        some = any(a * x >= 3 * y + low and b * x <= 3 * y + low + wide for x, y in product(range(-30, 31), range(3)))
        found = System(conj((*bounds, between(0, SYMS[1], 3)))).is_empty()
        assert found in (not some, None), (a, b, low, wide)
        undecided, asked = undecided + (found is None), asked + 1
    assert undecided < asked / 4


@pytest.mark.parametrize(
    ("apart", "empty"),
    [
        pytest.param(compare("!=", A * 16 + B, C * 16 + D), True, id="one thread for each element"),
        pytest.param(compare("!=", A, C), True, id="one row for each element"),
        pytest.param(compare("!=", (A * 16 + B) // 32, (C * 16 + D) // 32), True, id="one warp for each element"),
        pytest.param(compare("!=", E, F), False, id="in any two iterations"),
    ],
)
def test_threads_of_one_element(apart: Formula, empty: bool) -> None:
    """Threads (a, b) and (c, d) of 16 × 16 touch the element 16 · row + column of a tile, in the iterations e and f."""
    tile = conj([between(0, s, 16) for s in SYMS[:4]])
    same = Eq(A * 16 + B - C * 16 - D)
    assert System(conj((tile, same, Ge(E), Ge(F)))).is_empty(apart) is empty


def test_what_is_too_long_goes_to_isl() -> None:
    """Five symbols with coefficients that share nothing: neither shadow decides."""
    formula = conj((between(1, 12 * A - 17 * B, 5), between(2, 9 * A - 5 * C, 5), between(1, 7 * B - 11 * C, 4)))
    assert System(formula).is_empty() is None
    assert Points(formula).is_empty() is Set.of((), formula).is_empty()


def test_what_is_not_affine_is_said() -> None:
    with pytest.raises(NotAffine):
        System(Ge(A * B))
