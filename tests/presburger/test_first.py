"""The first point of a formula, against all points of a box and against the solver's."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.presburger.test_sets import J, N, Q, formulas

from texpr.affine.expr import Sym, expr, minimum
from texpr.presburger.formula import Eq, Formula, Ge, Or, between, conj, holds
from texpr.presburger.isl.sets import Set
from texpr.presburger.solve.first import Space, Unclear, bisected, sample

X, Y, Z, T = Sym("x"), Sym("y"), Sym("z"), Sym("t")
FROM, TO = -3, 5


@given(formulas(), st.tuples(st.booleans(), st.booleans(), st.booleans()))
@settings(max_examples=200)
def test_the_first_point_is_that_of_all_points_in_order(formula: Formula, ways: tuple[bool, bool, bool]) -> None:
    upward = dict(zip((Q, J, N), ways, strict=True))
    inside = conj((formula, *(between(FROM, sym, TO) for sym in upward)))
    space = Space.of(upward, (inside,))
    assume(space is not None)
    assert space is not None
    try:
        found = space.first(space.least, space.most)
    except Unclear:
        assume(False)
    order = [range(FROM, TO) if up else range(TO - 1, FROM - 1, -1) for up in ways]
    points = (point for point in product(*order) if holds(inside, dict(zip(upward, point, strict=True))))
    assert found == next(points, None)


@given(formulas(), st.integers(0, 3))
@settings(max_examples=200)
def test_a_sample_is_the_solvers(formula: Formula, least: int) -> None:
    whole = conj((formula, Ge(expr(N) - least)))
    some = Set.of((), whole).sample()
    try:
        found = sample(whole)
    except Unclear:
        found = None if some is None else bisected(whole)
    if found is not None:
        assert found == some


def test_bounds_that_run_away_are_for_a_solver() -> None:
    """A remainder that is no remainder: each round brings its number closer by one."""
    assert Space.of({X: True}, (Ge(minimum(X, 0) % 2 - 2), between(FROM, X, TO))) is None
    assert Space.of({X: True}, (Ge(minimum(X, 0) % 2 - 1), between(FROM, X, TO))) is not None


def test_what_is_far_is_found_by_refuting() -> None:
    """Trying values of y and z takes too long: for each x below 150 there are endlessly many."""
    far = conj(
        (Ge(expr(Y) - 2 * expr(Z)), Ge(2 * expr(Z) - Y + 1), Ge(expr(X) - 150), Or((Ge(expr(Y) - 900), Ge(expr(X) - 400))))
    )
    space = Space.of({X: True, Y: True, Z: True}, (far,))
    assert space is not None
    with pytest.raises(Unclear):
        sample(far)
    assert bisected(far) == Set.of((), far).sample() == {X: 150, Y: 900, Z: 450}


def test_symbols_that_are_fixed_say_what_others_are() -> None:
    """x of t = 8 · x + y, 0 ≤ y < 8."""
    space = Space.of({X: True, Y: True}, (Eq(8 * expr(X) + Y - T), between(0, Y, 8)), (T,))
    assert space is not None
    ends = space.at([(space.numbers[T], 43)])
    assert ends is not None and space.first(*ends) == (5, 3)
    assert space.at([(space.numbers[T], 43), (space.numbers[X], 4)]) is None


@pytest.mark.parametrize("facts", [(Ge(expr(X) * Y - 3),), (Ge(expr(X) - Z),)])
def test_products_and_other_symbols_are_for_a_solver(facts: tuple[Formula, ...]) -> None:
    assert Space.of({X: True, Y: True}, facts) is None


def test_creeping_bounds_are_for_a_solver() -> None:
    """3 · x − 3 · y is 1 or 2 nowhere, but by bounds alone that is seen at the end of the range."""
    facts = Eq(3 * expr(X) - 3 * expr(Y) - Z), between(0, X, 1 << 20), between(0, Y, 1 << 20), between(1, Z, 3)
    assert Space.of({X: True, Y: True, Z: True}, facts) is None
    assert sample(conj(facts)) is None


def test_comparisons_do_not_tighten_each_other_for_ever() -> None:
    """x ≤ y < x, by bounds alone only seen at the end of the range: a third one, which says what x is, has its turn."""
    facts = between(0, X, 1 << 40), between(0, Y, 1 << 40), Ge(expr(Y) - X), Ge(expr(X) - Y - 1), Eq(expr(X) - 3)
    space = Space.of({X: True, Y: True}, facts)
    assert space is not None and space.empty


def test_what_an_alternative_alone_names_needs_no_value_in_another() -> None:
    """⌊x / 4⌋ mod 8 is named where x > 9; the point is one with x = 0."""
    facts = between(0, X, 64), Or((Ge((expr(X) // 4) % 8 + expr(Y) // 3 - 99), Ge(-expr(X)))), between(0, Y, 9)
    assert sample(conj(facts)) == {X: 0, Y: 0}
