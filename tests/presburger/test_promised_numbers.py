"""What is promised of a table is known of numbers that are its elements, where there are such elements, and nothing else."""

from __future__ import annotations

from itertools import product

import pytest

from texpr.affine.expr import Expr, Rules, Sym, expr, number_of
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, compare, conj, differ
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import witness

N, M = expr(Sym("n")), expr(Sym("m"))
P, Q = expr(Sym("i")), expr(Sym("j"))
RANGE = Rules((N,), expr(0), M, False, False)
GROWS = Rules((N,), None, None, False, True)
APART = Rules((N,), None, None, True, False)
INSIDE = (Ge(P), Ge(N - 1 - P), Ge(Q), Ge(N - 1 - Q), Ge(M))


def of(index: Expr, rules: Rules | None) -> Expr:
    return expr(number_of("t[]", (index,), rules))


def is_shown(*facts: Formula) -> bool:
    """Whether no point is left; one that is may be spurious."""
    try:
        return witness(facts, TRUE) is None
    except Undecided:
        return False


@pytest.mark.parametrize("rules", [None, RANGE, GROWS, APART])
def test_each_promise_shows_what_it_says(rules: Rules | None) -> None:
    x, y = of(P, rules), of(Q, rules)
    assert is_shown(*INSIDE, Ge(x - M)) == (rules is RANGE)
    assert is_shown(*INSIDE, Ge(-1 - x)) == (rules is RANGE)
    assert is_shown(*INSIDE, Ge(Q - P), Ge(x - y - 1)) == (rules is GROWS)
    assert is_shown(*INSIDE, differ([P], [Q]), Eq(x - y)) == (rules is APART)
    assert is_shown(*INSIDE, Eq(P - Q), differ([x], [y]))  # it is a function


def test_nothing_is_known_of_elements_that_there_are_not() -> None:
    """Else an empty range would show anything."""
    x = of(P, RANGE)
    assert not is_shown(Ge(P), Ge(P - N), Eq(M), Ge(N), Ge(x - M))
    assert not is_shown(Ge(-1 - P), Eq(M), Ge(N))
    assert is_shown(Ge(P), Ge(N - 1 - P), Eq(M), Ge(x + 9))


def test_as_all_tables_of_three_elements_say() -> None:
    """Against every table with that promise: rows of two neighbours are apart."""
    a, b = expr(Sym("a")), expr(Sym("b"))
    rules = Rules((expr(3),), expr(0), expr(4), False, True)
    first = [expr(number_of("f[]", (e,), rules)) for e in (P, P + 1, Q, Q + 1)]
    rows = (Ge(a), Ge(first[1] - first[0] - 1 - a), Ge(b), Ge(first[3] - first[2] - 1 - b))
    bounds = (Ge(P), Ge(1 - P), Ge(Q), Ge(1 - Q), Ge(Q - P - 1))
    for shift in (0, 1):  # of the same row, or of one that lies one further
        question = conj((*bounds, *rows, compare("==", first[0] + a, first[2] + b - shift)))
        tables = (t for t in product(range(4), repeat=3) if t[0] <= t[1] <= t[2])
        meets = any(t[0] + x == t[1] + y - shift for t in tables for x in range(t[1] - t[0]) for y in range(t[2] - t[1]))
        assert is_shown(question) == (not meets)
