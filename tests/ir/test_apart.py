"""Loops whose first and last turns are printed as loops of their own: the same turns in the same order, for every extent.

The oracle executes both texts, test by test.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ir.traced import N, T, compared, did, trace

from texpr.affine.expr import ONE, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.kernel.turns.apart import spread
from texpr.ir.value import Literal, Ref
from texpr.ir.value.types import BOOL
from texpr.support.record import replace


def loop(tests: list[tuple[str, int, bool, bool]], first: int, last: int, lo: int, more: int) -> k.For:
    """A loop from `lo` to n + `more`, with a branch for each test of its index: with a number, or with n and a number."""
    turn, body = expr(T), list[k.Stmt]()
    for at, (name, number, of_size, turned) in enumerate(tests):
        other = expr(N) + number if of_size else expr(number)
        sides = (other, turn) if turned else (turn, other)
        decided = Sym(f"decided_{at}")
        arms = (did(f"then_{at}", turn),), (did(f"else_{at}", turn),)
        body += [k.Declare(decided, BOOL, compared(name, *sides)), k.If(Ref(decided, BOOL), *arms, uniform=True)]
    return k.For(T, expr(lo), expr(N) + more, tuple(body), ONE, first=first, last=last)


TESTS = st.lists(st.tuples(st.sampled_from(["lt", "ge"]), st.integers(-2, 3), st.booleans(), st.booleans()), max_size=4)


@settings(max_examples=150, deadline=None)
@given(TESTS, st.integers(0, 3), st.integers(0, 2), st.integers(-1, 2), st.integers(-2, 2))
def test_turns_are_the_same(tests: list[tuple[str, int, bool, bool]], first: int, last: int, lo: int, more: int) -> None:
    one = loop(tests, first, last, lo, more)
    made = spread((one,))
    for n in range(7):
        assert list(trace(made, {N: n})) == list(trace((one,), {N: n}))


def count(body: tuple[k.Stmt, ...]) -> list[int]:
    """How many branches each loop has."""
    return [sum(isinstance(s, k.If) for s in k.walk(each.body)) for each in body if isinstance(each, k.For)]


def test_between_there_is_no_branch() -> None:
    one = loop([("ge", 1, False, False), ("lt", 1, True, False), ("ge", 2, False, False)], 2, 1, 0, 2)
    assert count(spread((one,))) == [1, 1, 0, 0]  # of few turns nobody knows whether the last one is among them


def test_a_variable_that_is_assigned_is_not_decided() -> None:
    one = loop([("ge", 0, False, False)], 1, 0, 0, 0)
    changed = replace(one, body=(*one.body[:1], k.Assign(Sym("decided_0"), Literal(False, BOOL)), *one.body[1:]))
    assert count(spread((changed,))) == [1, 1]


@pytest.mark.parametrize("number", [0, 3])
def test_one_off(number: int) -> None:
    """A test that holds in all but one of the turns between is asked there."""
    made = spread((loop([("ge", number, False, False)], 1, 0, 0, 0),))
    assert count(made) == ([0, 0] if number == 0 else [0, 1])
