"""Arrays that lie flat, one subscript for all of an element's: tiled as those of as many dimensions are."""

from __future__ import annotations

import pytest
from tests.planner.programs import BATCHED, MATMUL, VALID, agrees, built, function
from tests.planner.test_moved import counted

from texpr.driver import lower, parse
from texpr.ir import kernel as k
from texpr.ir.program.selection import AUTO
from texpr.ir.program.text import print_schedule
from texpr.proof.plan import Verdict
from texpr.proof.search import proved

FLAT_MATMUL = """
fn matmul(A: f32[M * K], B: f32[K * N]): f32[M * N] {
    new C: f32[M * N]
    par M |i| { par N |j| {
        new acc: f32 = 0.0
        seq K |k| reduce(acc) { acc += A[i * K + k] * B[k * N + j] }
        C[i * N + j] = acc
    } }
    return C
}
"""
UPDATED = """
fn matmul(A: f32[M * K], B: f32[K * N], inout C: f32[M * N]) {
    par M i { par N j { seq K k { C[i * N + j] += A[i * K + k] * B[k * N + j] } } }
}
"""
FLAT_BATCHED = """
fn batched(A: f32[B * M * K], W: f32[B * K * N]): f32[B, M, N] {
    new C: f32[B, M, N]
    par B |b| { par M |i| { par N |j| {
        new acc: f32 = 0.0
        seq K |k| reduce(acc) { acc += A[(b * M + i) * K + k] * W[b * K * N + k * N + j] }
        C[b, i, j] = acc
    } } }
    return C
}
"""
FLAT_VALID = """
fn valid(X: f32[H * W], K: f32[9]): f32[H - 2, W - 2]
    where H >= 2, W >= 2
{
    new Y: f32[H - 2, W - 2]
    par H - 2 |p| { par W - 2 |q| {
        Y[p, q] = 0.0
        seq 3 |r| { seq 3 |s| { Y[p, q] += X[(p + r) * W + q + s] * K[3 * r + s] } }
    } }
    return Y
}
"""

CUBES = [(0, 2, 3), (2, 3, 0), (1, 1, 1), (13, 11, 17), (131, 137, 19)]


def cube(sizes: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip("MNK", sizes, strict=True))


@pytest.mark.parametrize("sizes", CUBES)
def test_products_are_right(sizes: tuple[int, int, int]) -> None:
    agrees(FLAT_MATMUL, cube(sizes))
    agrees(FLAT_MATMUL, cube(sizes), 0)
    agrees(UPDATED, cube(sizes), 1)


def test_others_are_right() -> None:
    agrees(FLAT_BATCHED, {"B": 3, "M": 33, "N": 35, "K": 9}, 0)
    agrees(FLAT_VALID, {"H": 37, "W": 71}, 0)
    agrees(FLAT_VALID, {"H": 2, "W": 5})
    agrees(FLAT_MATMUL, {"M": 131, "N": 137, "K": 19}, 0, fix=True)


@pytest.mark.parametrize(
    ("flat", "rows", "sizes"),
    [
        (FLAT_MATMUL, MATMUL, {"M": 128, "N": 256, "K": 32}),
        (FLAT_BATCHED, BATCHED, {"B": 2, "M": 64, "N": 64, "K": 32}),
        (FLAT_VALID, VALID, {"H": 66, "W": 66}),
    ],
    ids=["matmul", "batched", "valid"],
)
def test_as_much_is_moved_as_of_rows(flat: str, rows: str, sizes: dict[str, int]) -> None:
    assert counted(built(flat, (), "sm_90a"), flat, sizes) == counted(built(rows, (), "sm_90a"), rows, sizes)


@pytest.mark.parametrize("text", [FLAT_MATMUL, UPDATED, FLAT_BATCHED, FLAT_VALID])
def test_it_is_proved(text: str) -> None:
    compiled = lower(function(text), "sm_90a", schedule=AUTO)
    assert any(array.space is k.Space.SHARED for kernel in k.kernels(compiled.plan.steps) for array in kernel.arrays)
    proof = proved(compiled.function, compiled.plan)
    assert {each.verdict for each in proof.obligations} == {Verdict.PROVED}


def test_the_schedule_may_be_pasted() -> None:
    compiled = lower(function(UPDATED), "sm_90a", schedule=AUTO)
    assert compiled.schedule is not None
    program = parse(UPDATED + print_schedule(compiled.schedule, function(UPDATED)))
    (found,) = program["matmul"].schedules
    again = lower(program["matmul"], "sm_90a", schedule=found)
    body = [text.split("{", 1)[1].split("TX_AT")[0] for text in (compiled.source, again.source)]
    assert body[0] == body[1]


def test_memory_that_is_no_whole_rows_is_left() -> None:
    """What lies behind the last row would be out of every box."""
    text = UPDATED.replace("A: f32[M * K]", "A: f32[M * K + 5]")
    compiled = lower(function(text), "sm_90a", schedule=AUTO)
    shared = {array.buffer.name for kernel in k.kernels(compiled.plan.steps) for array in kernel.arrays}
    assert not any(name.startswith("A_s") for name in shared)
    agrees(text, {"M": 13, "N": 11, "K": 17}, 0)
