"""Cheap proofs and conditions on data, against every point of small boxes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texpr.affine.expr import Expr, Sym, expr, maximum, minimum
from texpr.ir.value import Index, Literal, Op, Ref, Value
from texpr.ir.value.types import BOOL, I8, I64, U8, DType
from texpr.presburger.formula import holds
from texpr.relation.conditions import condition
from texpr.relation.facts import never_negative

LOOP, N, M = Sym("i"), Sym("n"), Sym("m")
FACTS = (expr(LOOP), expr(N) - 1 - LOOP, expr(M) - 1)
"""0 ≤ i < n and m ≥ 1."""
MOST = 6


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> Expr:
    """Expressions of i, n and m with quotients, remainders and extrema."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([expr(LOOP), expr(N), expr(M), expr(1), expr(2), expr(-1)]))
    a, b = draw(values(depth - 1)), draw(values(depth - 1))
    join = draw(st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]))
    if join in ("//", "%") and b.is_constant and b.constant <= 0:
        return a
    joins: dict[str, Callable[[Expr, Expr], Expr]] = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "//": Expr.__floordiv__, "%": operator.mod,
        "min": minimum, "max": maximum,
    }  # fmt: skip
    return joins[join](a, b)


@settings(max_examples=300)
@given(values(), st.booleans())
def test_what_is_proved_holds(value: Expr, divides: bool) -> None:
    facts = (*FACTS, *((-(expr(N) % M),) if divides else ()))
    if not never_negative((value,), facts):
        return
    for i, n, m in product(range(MOST), range(MOST + 1), range(1, MOST)):
        if i < n and (n % m == 0 or not divides):
            try:
                assert value.evaluate({LOOP: i, N: n, M: m}) >= 0, (value, i, n, m)
            except ZeroDivisionError:
                continue


@pytest.mark.parametrize(
    ("value", "divides"),
    [
        (expr(N) // M - 1, True),
        (expr(M) - 1 - expr(LOOP) // (expr(N) // M), True),
        (expr(N) - 1 - minimum(expr(LOOP) * N // M, expr(N) - 1), False),
        (expr(M) - 1 - expr(LOOP) * M // N, False),
        (maximum(expr(LOOP) - N, expr(0)), False),
    ],
    ids=str,
)
def test_what_should_be_proved_is(value: Expr, divides: bool) -> None:
    facts = (*FACTS, *((-(expr(N) % M), expr(N) % M) if divides else ()))
    assert never_negative((value,), facts)
    if divides:
        assert not never_negative((value,), FACTS)


_PYTHON = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne}


@pytest.mark.parametrize("dtype", [I8, U8], ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_a_sum_of_data_is_what_numpy_says(dtype: DType, name: str) -> None:
    """t op 3 < limit, of every t of 8 bits: the formula holds exactly where the wrapped number is below."""
    t = Sym("t")
    kind = np.dtype(str(dtype).replace("i", "int").replace("u", "uint") if dtype is I8 else "uint8")
    info = np.iinfo(kind)
    join = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name]
    for number, limit in ((3, 5), (100, 0), (1, 120)):
        total: Value = Op(name, (Ref(t, dtype), Literal(number, dtype)), dtype)
        for compared, python in _PYTHON.items():
            asked = condition(Op(compared, (total, Literal(limit, dtype)), BOOL))
            assert asked.exact
            with np.errstate(over="ignore"):
                for each in range(info.min, info.max + 1):
                    found = int(join(np.array(each, kind), np.array(number, kind)))
                    assert holds(asked.formula, {t: each}) == python(found, limit)


def test_a_sum_that_cannot_wrap_has_no_remainder() -> None:
    t, k = Sym("t"), Sym("k")
    test = Op("lt", (Op("add", (Ref(t, I8), Index(expr(k), I8)), I8), Index(expr(N), I64)), BOOL)
    plain, wrapped = condition(test, ranges={t: (0, 100), k: (0, 7)}), condition(test)
    assert holds(plain.formula, {t: 127, k: 1, N: 128}) is False and holds(wrapped.formula, {t: 127, k: 1, N: 128}) is True
