"""Sums over a `par … reduce`: made in order where tiles of them read less, shared by threads elsewhere."""

from __future__ import annotations

import pytest
from tests.planner import test_cores
from tests.planner.programs import CONV, MATMUL, MATVEC, agrees, function

from texpr.ir.program.text import print_directive
from texpr.isa.registry import resolve
from texpr.planner.plan import plan

ZEROED = """
fn zeroed(A: f32[M, K], B: f32[K, N], b: f32[N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        par K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
        C[i, j] = max(0.0, C[i, j] + b[j])
    } }
    return C
}
"""

OUTSIDE = """
fn outside(A: f32[M, K], B: f32[K, N], inout C: f32[M, N]) {
    par K |k| reduce(C) { par M |i| { par N |j| { C[i, j] += A[i, k] * B[k, j] } } }
}
"""

NEAREST = """
fn nearest(x: f32[n, d], y: f32[m, d]): f32[n, m] {
    new D: f32[n, m]
    par n |i| { par m |j| {
        D[i, j] = inf
        par d |e| reduce(D) { D[i, j] min= abs(x[i, e] - y[j, e]) }
    } }
    return D
}
"""


def parallel(text: str) -> str:
    """The program with each loop that frees its sum a `par`."""
    return "\n".join(line.replace("seq ", "par ") if "reduce(" in line else line for line in text.splitlines())


def said(text: str, target: str) -> list[str]:
    """The directives of the plan."""
    schedule = plan(function(text), resolve(target)).schedule
    return [print_directive(each) for each in schedule.directives] if schedule is not None else []


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_the_plan_is_that_of_the_loop_in_order(target: str) -> None:
    assert said(parallel(MATMUL), target) == ["serial(k)", *said(MATMUL, target)]


TILED = [(text, target) for text in (parallel(MATMUL), ZEROED, OUTSIDE, NEAREST) for target in ("sm_90a", "cpu")]


@pytest.mark.parametrize(("text", "target"), [*TILED, (parallel(CONV), "sm_90a")])
def test_tiles_of_sums_are_right(text: str, target: str) -> None:
    assert said(text, target)[0].startswith("serial(")
    sizes = dict(zip(map(str, function(text).sizes), (33, 9, 37), strict=False))
    if target == "cpu":
        test_cores.agrees(text, sizes)
    else:
        agrees(text, sizes, 0)


@pytest.mark.parametrize(
    "text",
    [
        parallel(MATVEC),
        ZEROED.replace("M", "4").replace("N", "4"),
        ZEROED.replace("par K |k| reduce(C) {", "par K |k| reduce(C) #atomic {"),
        ZEROED.replace("A[i, k] * B[k, j]", "A[i, k] * B[k, j] * w[i, j, k]").replace(
            "b: f32[N]", "b: f32[N], w: f32[M, N, K]"
        ),
    ],
    ids=["each element once", "few sums", "atomics are asked for", "one array is read once"],
)
def test_other_sums_are_shared(text: str) -> None:
    assert said(text, "sm_90a") == []
