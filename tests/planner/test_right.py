"""What is computed stays what it was: the emulated code of automatic schedules against the interpreter, to the bit."""

from __future__ import annotations

import pytest
from tests.planner.programs import (
    BATCHED,
    CONV,
    IN_ORDER,
    JACOBI,
    MATMUL,
    MATVEC,
    OUTSIDE,
    SUM_IN_ORDER,
    agrees,
    function,
)

from texpr.driver import lower
from texpr.ir.program.selection import AUTO

CUBES = [(0, 2, 3), (2, 0, 3), (2, 3, 0), (1, 1, 1), (13, 11, 17), (131, 137, 19)]
PLATES = [(0, 0), (1, 1), (2, 5), (7, 5), (37, 71), (67, 131)]
ORDERS = (-1, 0, 1, 2, 3)


def cube(sizes: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip("MNK", sizes, strict=True))


def plate(sizes: tuple[int, int]) -> dict[str, int]:
    return dict(zip("HW", sizes, strict=True))


@pytest.mark.parametrize("sizes", CUBES)
def test_matmul(sizes: tuple[int, int, int]) -> None:
    agrees(MATMUL, cube(sizes))
    agrees(MATMUL, cube(sizes), 0)


@pytest.mark.parametrize("sizes", PLATES)
def test_convolution(sizes: tuple[int, int]) -> None:
    agrees(CONV, plate(sizes), 0)


@pytest.mark.parametrize("sizes", PLATES)
def test_jacobi(sizes: tuple[int, int]) -> None:
    agrees(JACOBI, plate(sizes), 0)


def test_other_orders_of_loops_and_other_forms() -> None:
    agrees(OUTSIDE, {"M": 33, "N": 70, "K": 9}, 0)
    agrees(BATCHED, {"B": 3, "M": 33, "N": 35, "K": 9}, 0)
    agrees(MATVEC, {"M": 131, "K": 37}, 0)


def test_sums_in_order_over_several_loops() -> None:
    agrees(SUM_IN_ORDER, {"H": 7, "W": 11, "C": 19, "F": 37}, 0)


@pytest.mark.parametrize("name", ["f64", "f16", "bf16", "i32", "i64", "u8"])
def test_types(name: str) -> None:
    agrees(IN_ORDER.replace("TYPE", name), {"M": 37, "N": 41, "K": 19}, 0)


def test_sizes_fixed_at_build() -> None:
    agrees(MATMUL, {"M": 131, "N": 137, "K": 19}, 0, fix=True)
    agrees(MATMUL, {"M": 128, "N": 128, "K": 32}, fix=True)
    agrees(CONV, {"H": 31, "W": 37}, 0, fix=True)
    agrees(JACOBI, {"H": 131, "W": 137}, 0, fix=True)


SCALED = """
fn scaled(a: f16, A: f16[M, K], B: f16[K, N], inout C: f16[M, N]) {
    par M |i| { par N |j| {
        C[i, j] = C[i, j] * a
        seq K |k| { C[i, j] += A[i, k] * B[k, j] }
    } }
}
"""
"""A scalar is read, which has no subscript."""

NARROW = """
fn narrow(A: f32[M, 3], B: f32[3, 1]): f32[M, 1] {
    new y: f32[M, 1]
    par M |i| { par 1 |j| {
        y[i, j] = 0.0
        seq 3 |k| reduce(y) { y[i, j] += A[i, k] * B[k, j] }
    } }
    return y
}
"""
"""No tile of it is possible."""


def test_scalars() -> None:
    agrees(SCALED, {"M": 37, "N": 41, "K": 19}, 0)


@pytest.mark.parametrize("fix", [False, True])
def test_nests_too_narrow_for_any_tile(fix: bool) -> None:
    compiled = lower(function(NARROW), "sm_90a", {"M": 5} if fix else {}, schedule=AUTO)
    assert compiled.planned is not None
    assert [n.reason for n in compiled.planned.nests] == ["no tile of it fits the target"]


def test_a_target_of_another_generation() -> None:
    agrees(MATMUL, {"M": 37, "N": 41, "K": 19}, 0, target="sm_80")


@pytest.mark.long
@pytest.mark.parametrize("seed", ORDERS)
def test_every_order_of_threads(seed: int) -> None:
    for sizes in CUBES:
        agrees(MATMUL, cube(sizes), seed)
        agrees(MATMUL, cube(sizes), seed, fix=True, tiny=True)
    for sizes in PLATES:
        for text in (CONV, JACOBI):
            agrees(text, plate(sizes), seed)
            agrees(text, plate(sizes), seed, fix=True, tiny=True)
