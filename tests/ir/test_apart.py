"""Loops whose first and last turns are printed as loops of their own: the same turns in the same order, for every extent.

The oracle executes both texts, test by test.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texpr.affine.expr import ONE, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.kernel.turns.apart import spread
from texpr.ir.value import Index, Literal, Op, Ref, Value
from texpr.ir.value.types import BOOL, I32, I64
from texpr.support.record import replace

N, T = Sym("n"), Sym("t")


def compared(name: str, one: Expr, other: Expr) -> Op:
    """A comparison of indices."""
    return Op(name, (Index(one, I64), Index(other, I64)), BOOL)


def did(text: str, turn: Expr) -> k.Stmt:
    """A statement that leaves a trace."""
    return k.Declare(Sym(text), I32, Index(turn, I32))


def trace(body: tuple[k.Stmt, ...], at: dict[Sym, int]) -> Iterator[tuple[str, int]]:
    """What statements do, one by one."""
    known: dict[Sym, bool] = {}

    def holds(value: Value) -> bool:
        match value:
            case Ref(sym):
                return known[sym]
            case Literal(constant):
                return bool(constant)
            case Op(name, (Index(one), Index(other))):
                a, b = one.evaluate(at), other.evaluate(at)
                return a < b if name == "lt" else a >= b
            case _:
                raise AssertionError(value)

    for stmt in body:
        match stmt:
            case k.For(sym, lo, hi, inner):
                for turn in range(lo.evaluate(at), hi.evaluate(at)):
                    yield from trace(inner, {**at, sym: turn})
            case k.If():
                yield from trace(stmt.then if holds(stmt.condition) else stmt.orelse, at)
            case k.Declare(sym=sym, dtype=dtype, value=value):
                if dtype is BOOL:
                    known[sym] = holds(value)
                else:
                    assert isinstance(value, Index)
                    yield sym.name, value.expr.evaluate(at)
            case _:
                raise AssertionError(stmt)


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
