"""Loops that are printed without the turns in which they do nothing: what is left does the same, for every extent."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ir.traced import N, T, compared, did, trace

from texpr.affine.expr import ONE, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.kernel.turns.trimmed import trimmed
from texpr.ir.value import Index, Literal, Ref
from texpr.ir.value.types import BOOL, I32
from texpr.support.record import replace

TURN, SIZE = expr(T), expr(N)
SIDES = st.sampled_from([TURN, TURN + 1, TURN * 2, TURN - N, expr(2), SIZE, SIZE - 3, SIZE - TURN])


def loop(tests: list[tuple[str, Expr, Expr, bool]], lo: int, more: int) -> k.For:
    """A loop from `lo` to n + `more`, all of whose body is under one test in another; some have a name."""
    body: tuple[k.Stmt, ...] = (did("done", TURN),)
    for at, (name, one, other, named) in enumerate(tests):
        test = compared(name, one, other)
        if named:
            decided = Sym(f"decided_{at}")
            body = (k.Declare(decided, BOOL, test), k.If(Ref(decided, BOOL), body, uniform=True))
        else:
            body = (k.If(test, body),)
    return k.For(T, expr(lo), expr(N) + more, body, ONE)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["lt", "ge"]), SIDES, SIDES, st.booleans()), max_size=3),
    st.integers(-1, 2),
    st.integers(-2, 2),
)
def test_turns_do_the_same(tests: list[tuple[str, Expr, Expr, bool]], lo: int, more: int) -> None:
    one = loop(tests, lo, more)
    made = trimmed((one,))
    for n in range(7):
        assert list(trace(made, {N: n})) == list(trace((one,), {N: n}))


@pytest.mark.parametrize(
    ("name", "other", "ends"),
    [
        ("ge", expr(2), ("2", "n + 2")),
        ("ge", expr(-1), ("0", "n + 2")),
        ("lt", expr(N), ("0", "n")),
        ("lt", SIZE + 5, ("0", "n + 2")),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_the_test_is_gone(name: str, other: Expr, ends: tuple[str, str], named: bool) -> None:
    (made,) = trimmed((loop([(name, TURN, other, named)], 0, 2),))
    assert isinstance(made, k.For)
    assert (str(made.lo), str(made.hi)) == ends
    assert not any(isinstance(each, k.If) for each in k.walk((made,)))


def is_kept(one: k.For) -> bool:
    """Whether a loop is as it was."""
    (made,) = trimmed((one,))
    return isinstance(made, k.For) and made.lo is one.lo and made.hi is one.hi and len(made.body) == len(one.body)


def test_what_is_done_otherwise_stays() -> None:
    """Another arm, something beside the test, turns of two, a test that may be assigned: such loops stay as they are."""
    test, done = compared("ge", TURN, expr(2)), did("done", TURN)
    tested, named = k.If(test, (done,)), Sym("named")
    for body in (
        (replace(tested, orelse=(done,)),),
        (done, tested),
        (k.Declare(named, BOOL, test), k.If(Ref(named, BOOL), (k.Assign(named, Literal(False, BOOL)),))),
        (k.If(compared("ge", TURN, expr(N)), (k.Assign(N, Index(TURN, I32)),)),),
    ):
        one = k.For(T, expr(N) - 2, expr(N) + 2, body, ONE)
        assert is_kept(one)
    assert is_kept(k.For(T, expr(0), SIZE, (tested,), expr(2)))
