"""Questions about numbers that data say, which are the same for the same arguments, and of which nothing else is known."""

from contextlib import suppress

import pytest

from texpr.affine.expr import Expr, expr, maximum, number_of, sym
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, between, compare, conj, differ, holds
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import witness

X, Y, N = sym("x"), sym("y"), sym("n")


def said(*args: Expr) -> Expr:
    return expr(number_of("said", args))


@pytest.mark.parametrize(
    "facts",
    [
        (Eq(X - Y), compare("<", said(X), said(Y))),
        (between(0, X, 4), differ([said(X // 4)], [said(expr(0))])),
        (between(0, X, 2), between(0, Y, 2), Eq(X + Y - 2), differ([said(X)], [said(Y)])),
        (Eq(said(X) - Y), Eq(X), differ([said(Y)], [said(said(expr(0)))])),
        (between(0, X, said(Y)), compare("<=", said(Y), 0)),
    ],
    ids=["equal", "equal in bounds", "equal by two", "of a number", "a loop of no turns"],
)
def test_equal_arguments_give_equal_numbers(facts: tuple[Formula, ...]) -> None:
    assert witness(facts, TRUE) is None


@pytest.mark.parametrize(
    "facts",
    [
        (compare("<", said(X), said(Y)),),
        (between(0, X, said(Y)),),
        (Eq(X - Y - 1), Eq(said(X) - said(Y))),
        (Eq(said(X) - Y), Eq(said(Y) - X - 1)),
    ],
    ids=["other arguments", "a loop of some turns", "equal by chance", "of each other"],
)
def test_data_decide_what_is_not_known(facts: tuple[Formula, ...]) -> None:
    with pytest.raises(Undecided, match="data"):
        witness(facts, TRUE)


def test_what_divides_by_no_size_is_undecided() -> None:
    with pytest.raises(Undecided, match="divides"):
        witness((Ge(X % N - 1), Ge(-N)), Ge(N))


def test_a_point_has_all_facts_whatever_unknowns_are_called() -> None:
    """What is taken for an unknown has such a name, and so have digits of indices: those are the facts' own."""
    m, n, digit = sym("m"), sym("n"), sym("⟪i / 1⟫")
    sizes = conj((Ge(m), Ge(n)))
    facts = between(0, digit, (m * n + 5) // 6), Ge(digit - 1)
    with suppress(Undecided):
        point = witness(facts, sizes)
        assert point is not None and all(holds(fact, point) for fact in facts)


def test_products_inside_of_quotients_are_looked_at() -> None:
    """Of no rows there is no row to divide by."""
    m, n, row, part = (sym(name) for name in "mnrp")
    inside = between(0, part, (m * n + 5) // 6), between(0, row, 6), Ge(maximum(m * n, 1) - 6 * part - row - 1)
    assert witness((*inside, Ge((6 * part + row) // n - m)), conj((Ge(m), Ge(n)))) is None


def test_the_greater_of_two_is_split_on_once() -> None:
    """Over a part of a size that may be 0 nothing is simplified: there the greater one stays, whichever it is known to be."""
    m, n, row, column = (sym(name) for name in "mnrc")
    part = (m * n + 3) // 4
    inside = between(0, row, m), between(0, column, n), Ge(-((column + row * maximum(n, 1)) % part) - 1)
    with suppress(Undecided):
        assert witness(inside, conj((Ge(m), Ge(n)))) is None


def test_a_symbol_with_one_value_is_that_value_over_a_size() -> None:
    """Of an axis with one block the number is 0: over a size, where terms are unknowns, that has to be said before."""
    facts = (between(0, Y, 1), differ([(X - 4 * Y) % N], [X % N]))
    assert witness(facts, Ge(N - 1)) is None
    with suppress(Undecided):  # of one with two blocks it may differ
        assert witness((between(0, Y, 2), *facts[1:]), Ge(N - 1)) is not None
