"""What is read across what is written goes through tiles: right at any size and type, each sector moved once, no conflicts."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import module, run_plan
from tests.planner.programs import agrees, arrays_of, built, function

from texpr.driver import lower
from texpr.ir import kernel as k
from texpr.ir.program.selection import AUTO
from texpr.isa.registry import resolve
from texpr.planner.plan import plan
from texpr.proof.plan import Verdict
from texpr.proof.search import proved
from texpr.support.record import as_dict

TRANSPOSE = """
fn t(A: TYPE[M, N]): TYPE[N, M] {
    new B: TYPE[N, M]
    par N |j| { par M |i| { B[j, i] = A[i, j] } }
    return B
}
"""
SUM = """
fn s(A: f32[M, N], B: f32[N, M], c: f32[M]): f32[N, M] {
    new D: f32[N, M]
    par M |i| { par N |j| { D[j, i] = A[i, j] + B[j, i] * c[i] - A[i, j] * 2.0 } }
    return D
}
"""
PERMUTE = """
fn p(X: f16[A, B, C]): f16[C, A, B] {
    new Y: f16[C, A, B]
    par C |c| { par A |a| { par B |b| { Y[c, a, b] = X[a, b, c] } } }
    return Y
}
"""
TWO = """
fn two(A: f32[M, N], B: f32[M, N]): f32[N, M] {
    new C: f32[N, M]
    par N |j| { par M |i| { C[j, i] = A[i, j] - B[i, j] } }
    return C
}
"""
HALF = """
fn half(A: f32[M, N]): f32[N, M] {
    new B: f32[N, M]
    par N |j| { par M |i| { if j > i { B[j, i] = A[i, j] } else { B[j, i] = 1.0 } } }
    return B
}
"""

SHAPES = [(0, 3), (3, 0), (1, 1), (5, 70), (33, 31), (64, 96), (67, 101)]


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("text", [TRANSPOSE.replace("TYPE", "f32"), SUM, TWO, HALF], ids=["transpose", "sum", "two", "half"])
def test_right_at_any_size(text: str, sizes: tuple[int, int]) -> None:
    agrees(text, {"M": sizes[0], "N": sizes[1]}, 0)


@pytest.mark.parametrize("name", ["f64", "f16", "bf16", "i32", "i64", "u8", "f8e4m3"])
def test_types(name: str) -> None:
    agrees(TRANSPOSE.replace("TYPE", name), {"M": 37, "N": 65}, 1)


def test_more_dimensions_and_fixed_sizes() -> None:
    agrees(PERMUTE, {"A": 3, "B": 41, "C": 67}, 0)
    agrees(PERMUTE, {"A": 33, "B": 2, "C": 5})
    agrees(TRANSPOSE.replace("TYPE", "f32"), {"M": 47, "N": 65}, 0, fix=True)


@pytest.mark.parametrize("name", ["f64", "f32", "bf16", "u8"])
def test_each_sector_is_moved_once_and_no_bank_waits(name: str) -> None:
    text = TRANSPOSE.replace("TYPE", name)
    compiled, sizes = built(text), {"M": 96, "N": 160}
    emulated = module(compiled.source)
    emulated.clear_counts()
    arrays = {n: np.zeros_like(a) for n, a in arrays_of(function(text), sizes).items()}
    assert run_plan(compiled.function, compiled.plan, arrays, sizes, count=True).reports == []
    (found,) = emulated.counts().values()
    least = next(iter(arrays.values())).nbytes // 32
    assert (found.global_load_sectors, found.global_store_sectors, found.bank_conflicts) == (least, least, 0), as_dict(found)


@pytest.mark.parametrize("text", [TRANSPOSE.replace("TYPE", "f32"), SUM, PERMUTE, TWO, HALF])
def test_it_is_proved(text: str) -> None:
    compiled = lower(function(text), "sm_90a", schedule=AUTO)
    assert any(array.space is k.Space.SHARED for kernel in k.kernels(compiled.plan.steps) for array in kernel.arrays)
    assert {each.verdict for each in proved(compiled.function, compiled.plan).obligations} == {Verdict.PROVED}


@pytest.mark.parametrize(
    "text",
    [
        TRANSPOSE.replace("TYPE", "f32").replace("A[i, j]", "A[0, i]").replace("f32[M, N]", "f32[N, M]", 1),
        TRANSPOSE.replace("TYPE", "f32").replace("[M, N]", "[M, 3]").replace("[N, M]", "[3, M]").replace("par N", "par 3"),
        TRANSPOSE.replace("TYPE", "f32").replace("A[i, j]", "A[i, 2 * j]").replace("A: f32[M, N]", "A: f32[M, 2 * N]"),
    ],
    ids=["along", "short", "strided"],
)
def test_what_is_left_alone(text: str) -> None:
    made = plan(function(text), resolve("sm_90a"))
    assert not any("turned" in each.reason for each in made.nests)
