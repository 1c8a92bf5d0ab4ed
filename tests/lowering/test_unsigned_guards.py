"""Elements of u64, by name and as they stand, that are compared with indices: exactly, above 2⁶³ too."""

import numpy as np
import pytest
from tests.lowering.emulated import run_plan

import texpr
from texpr import driver
from texpr.interp import run as interpret
from texpr.ir.program.text import print_function
from texpr.ir.proof import Verdict
from texpr.proof.search import proved

TABLE = np.arange(10, 16, dtype=np.int32)
X = np.array([2**63, 0, 1, 5, 2**64 - 1, 2**63 - 1, 3, 6], np.uint64)
GUARDS = {
    "let v = x[i]  if v < m { y[i] = z[v] }": lambda i, m: X[i] < m,
    "let v = x[i]  if m > v { y[i] = z[v] }": lambda i, m: X[i] < m,
    "if x[i] < m { y[i] = z[x[i]] }": lambda i, m: X[i] < m,
    "let v = x[i]  if i + 1 <= v { y[i] = z[i % 2] }": lambda i, m: i + 1 <= int(X[i]),
    "let v = x[i]  let w = x[0]  if w < v { y[i] = z[i % 2] }": lambda i, m: X[0] < X[i],
    "let v = x[i]  if v < 9223372036854775808 { y[i] = z[i % 2] }": lambda i, m: int(X[i]) < 2**63,
    "let v = x[i]  if v >= 2 * i { y[i] = z[i % 2] }": lambda i, m: int(X[i]) >= 2 * i,
}


def program(guard: str) -> str:
    body = f"par n |i| {{ y[i] = 0  {guard} }}"
    return f"fn f(x: u64[n], z: i32[m]): i32[n] where m >= 2 {{ new y: i32[n]  {body}  return y }}"


@pytest.mark.parametrize("guard", GUARDS)
def test_guards_of_u64_are_exact(guard: str) -> None:
    function = texpr.parse(program(guard))["f"]
    made, given = driver.lower(function, "sm_90a"), {"x": X, "z": TABLE}
    told = [GUARDS[guard](i, len(TABLE)) for i in range(len(X))]
    chosen = TABLE[X.astype(np.int64) % 6] if "z[v]" in guard or "z[x" in guard else TABLE[np.arange(len(X)) % 2]
    want = np.where(told, chosen, 0)
    np.testing.assert_array_equal(interpret(function, given)["y"], want)
    np.testing.assert_array_equal(run_plan(made.function, made.plan, given).arrays["y"], want)
    assert not any(proved(made.function, made.plan).of(each) for each in (Verdict.REFUSED, Verdict.UNDECIDED))


@pytest.mark.parametrize("guard", GUARDS)
def test_their_text_means_the_same(guard: str) -> None:
    text = print_function(texpr.parse(program(guard))["f"])
    assert print_function(texpr.parse(text)["f"]) == text


def test_what_is_bounded_may_be_subtracted_from() -> None:
    """Then i64 holds it, and what is negative is negative."""
    text = "fn f(x: u64[n], inout y: i32[n]) assume x in 0..n { par n |i| { let v = x[i]  if v - 1 < i - 1 { y[i] = 1 } } }"
    given = {"x": np.array([0, 1, 1, 3, 2, 0], np.uint64), "y": np.zeros(6, np.int32)}
    function = texpr.parse(text)["f"]
    made = driver.lower(function, "sm_90a")
    want = [int(v < i) for i, v in enumerate(given["x"])]
    assert interpret(function, given)["y"].tolist() == want
    assert run_plan(made.function, made.plan, given).arrays["y"].tolist() == want
