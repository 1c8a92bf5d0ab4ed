"""`stage(A, in=global)`: whole copies whose rows begin at multiples of 16 bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.schedule.rows import open_of, undecided

import texpr
from texpr.driver import Compiled, lower, parse
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.runtime import load_cpu
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.toolchain import Toolchain, this_machine

PRODUCT = """
fn product(A: bf16[M, K], B: bf16[K, N]): bf16[M, N] {
    new C: bf16[M, N]
    par M |i| { par N |j| {
        new total: f32
        total = 0.0
        seq K |k| reduce(total) { total += A[i, k] * B[k, j] }
        C[i, j] = bf16(total)
    } }
    return C
}
schedule product for sm_90a {
    stage(A, in=global) -> A_g
    stage(B, in=global) -> B_g
    split(i, 64) -> (i_b, i_m)
    split(j, 64) -> (j_b, j_m)
    split(k, 64) -> (k_o, k_i)
    reorder(i_b, j_b, k_o, i_m, j_m, k_i)
    bind(i_b, grid.x)
    bind(j_b, grid.y)
    stage(A_g, at=k_o, via=tma, in=shared, swizzle=128B) -> A_s
    stage(B_g, at=k_o, via=tma, in=shared, swizzle=128B) -> B_s
    mma(i_m, j_m, k_i, wgmma_m64n64k16_f32_bf16_bn)
    pipeline(k_o, stages=3, lag=1)
}
"""

CUBE = """
fn cube(X: f32[A, B, C], w: f32[C]): f32[A, B] {
    new y: f32[A, B]
    par A |a| { par B |b| {
        y[a, b] = 0.0
        seq C |c| reduce(y) { y[a, b] += X[a, b, c] * w[c] }
    } }
    return y
}
schedule cube for sm_90a { stage(X, in=global) -> X_g }
"""


@cache
def made(text: str, target: str = "sm_90a") -> Compiled:
    (function,) = parse(text).functions
    return lower(function, target, schedule=function.schedules[0])


def of_product(m: int, n: int, k: int) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-2, 3, (m, k)), rng.integers(-2, 3, (k, n))
    wanted = (a @ b).astype(np.float32).astype(ml_dtypes.bfloat16)
    return {"A": a.astype(ml_dtypes.bfloat16), "B": b.astype(ml_dtypes.bfloat16)}, wanted


@pytest.mark.parametrize("at", [(1, 1, 1), (37, 41, 67), (65, 66, 129), (64, 64, 64), (5, 0, 3), (5, 6, 0)])
def test_a_product_of_rows_that_begin_anywhere(at: tuple[int, int, int]) -> None:
    """What lies between rows is poisoned, and nothing of it arrives."""
    given, wanted = of_product(*at)
    found = made(PRODUCT)
    ran = run_plan(found.function, found.plan, given, dict(zip("MNK", at, strict=True)), seed=1)
    assert ran.reports == []
    assert np.array_equal(ran.arrays["C"].astype(np.float32), wanted.astype(np.float32))


def test_a_launcher_has_room_for_whole_rows() -> None:
    (function,) = parse(PRODUCT).functions
    kernel = texpr.compile(function, "sm_90a", schedule=function.schedules[0], emulate=True)
    for at in ((3, 5, 7), (0, 4, 4), (66, 65, 130)):
        arguments: Mapping[str, Any]
        arguments, wanted = of_product(*at)
        assert np.array_equal(np.asarray(kernel(**arguments)).astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("text", [PRODUCT, CUBE])
def test_proved(text: str) -> None:
    assert open_of(made(text)) == []


def of_cube(a: int, b: int, c: int) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    x = np.random.default_rng(4).integers(-3, 4, (a, b, c)).astype(np.float32)
    w = np.arange(c, dtype=np.float32)
    return {"X": x, "w": w}, x @ w


@pytest.mark.parametrize("at", [(1, 1, 1), (3, 5, 7), (2, 3, 8), (0, 4, 4)])
def test_several_dimensions(at: tuple[int, int, int]) -> None:
    given, wanted = of_cube(*at)
    for target in ("sm_90a", "cpu"):
        found = made(CUBE.replace("sm_90a", target), target)
        sizes: Mapping[str, int] = dict(zip("ABC", at, strict=True))
        if target == "cpu":
            kernel = load_cpu(Toolchain(this_machine()), found.function, found.plan)
            arguments: Mapping[str, Any] = given
            assert np.array_equal(np.asarray(kernel(**arguments)), wanted)
        else:
            assert np.array_equal(run_plan(found.function, found.plan, given, sizes).arrays["y"], wanted)


STRIDES = "strides [4 * B * ((C + 3) / 4), 4 * ((C + 3) / 4), 1]"


@pytest.mark.planted
@pytest.mark.parametrize("other", [
    "strides [C, 4 * ((C + 3) / 4), 1]", "strides [B * C, C - 1, 1]", "strides [4 * B * ((C + 3) / 4), 1, 1]",
    "strides [4 * B * (C / 4), 4 * (C / 4), 1]", "strides [8 * B * ((C + 3) / 4), 4 * ((C + 3) / 4), 2]",
])  # fmt: skip
def test_rows_of_workspace_may_not_overlap(other: str) -> None:
    """A plan from elsewhere, whose rows of workspace overlap, or lie beyond what is allocated, is not well formed."""
    text = plan_text(made(CUBE).plan)
    assert text.count(STRIDES) == 3
    verify(parse_plan(text))
    with pytest.raises(CompilerBug, match="rows of X_g may overlap"):
        verify(parse_plan(text.replace(STRIDES, other)))


@pytest.mark.planted
@pytest.mark.parametrize(("right", "other"), [
    ("= X[X_g_0, X_g_1, X_g_2]", "= X[X_g_0, X_g_1, 0]"),
    ("= X[X_g_0, X_g_1, X_g_2]", "= X[0, X_g_1, X_g_2]"),
    ("X_g[X_g_0, X_g_1, X_g_2] =", "X_g[X_g_0, 0, X_g_2] ="),
    ("(i32(X_g_2) < i32(C))", "(i32(X_g_2) < i32(C - 1))"),
    ("    launch cube_X_g\n    launch cube_y", "    launch cube_y\n    launch cube_X_g"),
])  # fmt: skip
def test_a_wrong_copy_is_not_proved(right: str, other: str) -> None:
    found = made(CUBE)
    text = plan_text(found.plan).replace(" dependent\n", "\n")
    assert text.count(right) == 1
    plan = parse_plan(text.replace(right, other))
    assert undecided(found.function, plan) != []


@pytest.mark.parametrize(("text", "why"), [
    ("fn f(inout x: f32[n, m]) { par n |i| { par m |j| { x[i, j] = x[i, j] + 1.0 } } }", "is written where it is read"),
    ("fn f(x: f32[n, m]): f32[n] { new y: f32[n]  par n |i| { y[i] = 1.0 }  return y }", "is never read"),
    ("fn f(x: f32): f32[4] { new y: f32[4]  par 4 |i| { y[i] = x }  return y }", "is a number"),
])  # fmt: skip
def test_refused(text: str, why: str) -> None:
    (function,) = parse(f"{text}\nschedule f for sm_90a {{ stage(x, in=global) }}").functions
    with pytest.raises(TexprError) as raised:
        lower(function, "sm_90a", schedule=function.schedules[0])
    assert raised.value.diagnostics[0].code == "E0912" and why in raised.value.diagnostics[0].message
