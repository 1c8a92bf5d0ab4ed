"""The program beside a program: results are as near the exact ones as it says, and of what it cannot follow says nothing."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from texpr.frontend import parse
from texpr.interp import run
from texpr.interp.shadow import Unbounded, shadow, shadowed
from texpr.schedule.joint.records import called

CHAINED = """
fn f(A: f16[m, n], B: f16[n, m], b: f32[m]): f16[m] {
    new s: f32[m, m]
    new y: f16[m]
    par m |i| { par m |j| {
        s[i, j] = b[j]
        seq n |k| reduce(s) { s[i, j] += A[i, k] * B[k, j] }
    } }
    par m |i| {
        new t: f32
        t = 0.0
        seq m |j| reduce(t) { t -= s[i, j] * f32(j) }
        let half = t * 0.5
        y[i] = f16(select(i > 1, max(half, -1.0), fma(half, 2.0, b[i])))
    }
    return y
}
"""
RECURRENT = """
fn f(x: f32[n], inout y: f32[n]) {
    seq n - 1 |i| { y[i + 1] = y[i] * x[i] + y[i + 1] }
}
"""


def exact_of(x: list[float], y: list[float]) -> list[Fraction]:
    """The recurrence, exactly."""
    found = [Fraction(each) for each in y]
    for i in range(len(x) - 1):
        found[i + 1] = found[i] * Fraction(x[i]) + found[i + 1]
    return found


def error_of(beside: dict[str, np.ndarray], name: str) -> np.ndarray:
    """The greatest error of each element."""
    return np.expm1(beside[f"{name}'g"] + beside[f"{name}'n"]) * beside[f"{name}'m"]


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = 5, 40
    given = {
        "A": rng.standard_normal((m, n)).astype(np.float16),
        "B": (rng.standard_normal((n, m)) * 2.0**-18 * 4**seed).astype(np.float16),
        "b": rng.standard_normal(m).astype(np.float32) * (seed > 1),
    }  # fmt: skip
    function = parse(CHAINED).functions[0]
    allowed = error_of(run(shadow(function, {"m": m, "n": n}, ()), shadowed(function, given)), "y")
    A, B, b = (given[name].astype(np.float64) for name in "ABb")
    t = -((A @ B + b) * np.arange(m)).sum(1) * 0.5
    exact = np.where(np.arange(m) > 1, np.maximum(t, -1), t * 2 + b)
    got = run(function, given)["y"].astype(np.float64)
    assert np.all(np.abs(got - exact) <= allowed)
    assert np.all(allowed < 2e-2 * (np.abs(A) @ np.abs(B) * np.arange(m) + np.abs(b) * 10).sum(1) + 1e-3)


def test_a_recurrence() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 30)).astype(np.float32)
    function = parse(RECURRENT).functions[0]
    given = {"x": x, "y": y}
    allowed = error_of(run(shadow(function, {"n": 30}, ()), shadowed(function, given)), "y")
    got = run(function, given)["y"]
    exact = exact_of(list(map(float, x)), list(map(float, y)))
    assert all(abs(Fraction(float(a)) - b) <= Fraction(float(c)) for a, b, c in zip(got, exact, allowed, strict=True))
    assert np.all(allowed <= 1e-5 * run(shadow(function, {"n": 30}, ()), shadowed(function, given))["y'm"])


def test_a_bound_that_leaves_out_a_rounding_is_too_small() -> None:
    """Of a long sum in f16, one rounding a term."""
    function = parse("fn f(x: f16[n]): f16 { new s: f16 = 0.0  seq n |i| { s += x[i] }  return s }").functions[0]
    given = {"x": np.full(2000, 1 / 3, ml_dtypes.finfo(np.float16).dtype)}
    beside = run(shadow(function, {"n": 2000}, ()), shadowed(function, given))
    error = abs(float(run(function, given)["s"]) - 2000 * float(given["x"][0]))
    assert float(np.expm1(beside["s'n"]) * beside["s'm"]) >= error > 20 * float(beside["s'm"]) * 2.0**-11


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("y[i] = exp(x[i])", "`exp`"), ("y[i] = x[i] / 3.0", "`div`"), ("y[i] *= x[i]", "the update `mul`"),
        ("if x[i] > 0.0 { y[i] = 1.0 }", "a choice, or an integer, by floating-point data"),
        ("y[i] = select(x[i] > 0.0, 1.0, 2.0)", "a choice, or an integer, by floating-point data"),
        ("y[i] = f32(i32(x[i]))", "a choice, or an integer, by floating-point data"),
    ],
)  # fmt: skip
def test_what_has_no_shadow(body: str, why: str) -> None:
    function = parse(f"fn f(x: f32[n], inout y: f32[n]) {{ par n |i| {{ {body} }} }}").functions[0]
    with pytest.raises(Unbounded, match=why.replace("(", r"\(")):
        shadow(function, {"n": 4}, ())


def test_a_narrow_sum_may_be_kept_in_f32() -> None:
    """Then a term counts for its share of a step of that, and for what an addition in its own type loses."""
    text = "fn f(x: f16[64]): f16 { new y: f16 = 0.0  seq 64 |k| reduce(y) { y += x[k] * x[k] }  return y }"
    function, instr = parse(text).functions[0], called("mma_m16n8k16_f32_f16")
    assert instr is not None and instr.rounding is not None
    given = {"x": np.ones(64, np.float16)}
    plain, kept = (
        run(shadow(function, {}, instrs), shadowed(function, given))["y'n"].item() for instrs in ((), (instr,))
    )  # fmt: skip
    assert plain < kept < plain + 64 * 2 * instr.rounding.step
