"""Tests beside each other and in loops, and one around all of them: the same statements in the same order, for every thread.

The oracle executes both texts, test by test.
"""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.kernel.turns.groups import gathered
from texpr.ir.value import Index, Op, Ref, Value
from texpr.ir.value.types import BOOL, I32

P, T, V = Sym("p"), Sym("t"), Sym("v")
"""A thread, a turn, and a variable that statements change."""

TESTS = (expr(P) // 2 - expr(T) % 2, expr(P) % 2, expr(V) % 2)
"""Expressions that are 0 where a test holds: a group's turn, a lane, a variable."""


def when(which: int) -> Value:
    return Op("eq", (Index(TESTS[which], I32), Index(ZERO, I32)), BOOL)


def did(number: int) -> k.Stmt:
    """A statement that leaves a trace."""
    return k.Declare(Sym(f"did_{number}"), I32, Index(expr(T) * 100 + number, I32))


def trace(body: tuple[k.Stmt, ...], at: dict[Sym, int]) -> Iterator[tuple[str, int]]:
    """What statements do, one by one; `at` is changed."""
    for stmt in body:
        match stmt:
            case k.For(sym, lo, hi, inner):
                for turn in range(lo.evaluate(at), hi.evaluate(at)):
                    at[sym] = turn
                    yield from trace(inner, at)
            case k.If(Op("eq", (Index(one), Index(other)))):
                yield from trace(stmt.then if one.evaluate(at) == other.evaluate(at) else stmt.orelse, at)
            case k.Declare(sym=sym, value=Index(value)):
                yield sym.name, value.evaluate(at)
            case k.Assign(sym=sym, value=Index(value)):
                at[sym] = value.evaluate(at)
            case _:
                raise AssertionError(stmt)


def changes(by: int) -> k.Stmt:
    return k.Assign(V, Index(expr(V) + by, I32))


LEAVES = st.one_of(st.integers(0, 9).map(did), st.integers(1, 2).map(changes))
LISTS = st.recursive(
    st.lists(LEAVES, min_size=1, max_size=2).map(tuple),
    lambda inner: st.lists(
        st.one_of(
            LEAVES,
            st.tuples(st.integers(0, 2), inner).map(lambda each: k.If(when(each[0]), each[1])),
            st.tuples(st.integers(0, 2), inner, inner).map(lambda each: k.If(when(each[0]), each[1], each[2])),
            inner.map(lambda body: k.For(T, ZERO, expr(3), body, ONE)),
        ),
        min_size=1,
        max_size=4,
    ).map(tuple),
    max_leaves=12,
)


@settings(max_examples=200)
@given(LISTS)
def test_each_thread_does_the_same(body: tuple[k.Stmt, ...]) -> None:
    for thread in range(4):
        start = {P: thread, T: 0, V: thread // 3}
        assert [*trace(gathered(body), {**start})] == [*trace(body, {**start})]


def group(*body: k.Stmt) -> k.If:
    return k.If(when(0), body)


def test_one_test_is_around_a_loop_and_what_is_beside_it() -> None:
    turns: Expr = expr(4)
    inner = k.For(Sym("n"), ZERO, turns, (group(did(2)),), ONE)
    (made,) = gathered((group(did(1)), inner, group(did(3))))
    assert isinstance(made, k.If) and [type(each).__name__ for each in made.then] == ["Declare", "For", "Declare"]
    assert not any(isinstance(each, k.If) for each in k.walk(made.then))


def test_what_is_of_data_or_has_another_arm_stays() -> None:
    held = k.If(Ref(Sym("held"), BOOL), (did(1),))
    other = k.If(when(0), (did(1),), (did(2),))
    assert len(gathered((held, held))) == 2 and len(gathered((other, other))) == 2
    assert isinstance(gathered((k.For(T, ZERO, expr(3), (group(did(1)),), ONE),))[0], k.For)  # a test of the loop's own turn
