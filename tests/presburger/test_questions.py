"""Questions about numbers that data say, which are the same for the same arguments, and of which nothing else is known."""

import pytest

from texpr.affine.expr import Expr, expr, number_of, sym
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, between, compare, differ
from texpr.presburger.questions import witness
from texpr.presburger.raw import Undecided

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
