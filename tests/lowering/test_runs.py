"""Rows that the engine copies without a map (`via=bulk`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.lowering.mutants import mutants
from tests.schedule.laid import binary, integers, laid, refusal, wrong

from texpr.ir import kernel as k

ROWS = """
fn rows(A: f32[M, K] align(16)): f32[K, M]
    where M % 8 == 0, K % 32 == 0
{
    new C: f32[K, M]
    par K |k| { par M |i| { C[k, i] = A[i, k] } }
    return C
}"""

TILES = """
    split(i, 8) -> (bi, ti)  split(k, 32) -> (bk, tk)
    reorder(bi, bk, ti, tk)
    bind(bi, grid.y)  bind(bk, grid.x)
    stage(A, at=bk, in=shared, via=bulk) -> As"""

STEPS = TILES.replace("bind(bk, grid.x)", "bind(ti, block.y)  bind(tk, block.x)")
"""A block goes through the tiles of its rows."""

SUM = """
fn sums(x: f16[n, 64] align(16)): f16[n] {
    new y: f16[n]
    par n |i| { y[i] = 0.0  seq 64 |j| { y[i] += x[i, j] } }
    return y
}"""


def test_rows() -> None:
    made = laid(ROWS, TILES)
    for rows, columns in ((24, 64), (0, 32), (8, 0), (8, 32)):
        assert wrong(made, {"A": integers(rows, columns)}, {"M": rows, "K": columns}) is None
    (kernel,) = k.kernels(made.plan.steps)
    assert not kernel.maps and any(isinstance(s, k.CopyBulk) for s in made.statements)
    assert [s.bytes for s in made.statements if isinstance(s, k.BarrierExpect)] == [8 * 32 * 4]


def test_a_row_for_each_block() -> None:
    made = laid(SUM, "bind(i, grid.x)  stage(x, at=i, in=shared, via=bulk) -> row")
    for rows in (0, 1, 7):
        assert wrong(made, {"x": integers(rows, 64, dtype="float16")}, {"n": rows}, (None, 0)) is None


def test_steps_of_a_loop() -> None:
    """A barrier with a phase for each step."""
    made = laid(ROWS, STEPS)
    assert wrong(made, {"A": integers(16, 96)}, {"M": 16, "K": 96}) is None


PRODUCT = """
fn mm(A: f32[M, K] align(16), B: f32[K, N]): f32[M, N]
    where K % 16 == 0, M % 16 == 0
{
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""


def test_runs_come_iterations_ahead() -> None:
    schedule = """
    split(i, 16) -> (bi, ti)  split(j, 16) -> (bj, tj)  split(k, 16) -> (ko, ki)
    reorder(bi, bj, ko, ti, tj, ki)
    bind(bi, grid.y)  bind(bj, grid.x)
    stage(A, at=ko, in=shared, via=bulk) -> As
    bind(ti, block.y)  bind(tj, block.x)
    pipeline(ko, stages=3)"""
    arrays = {"A": integers(32, 64), "B": integers(64, 20, seed=1)}
    assert wrong(laid(PRODUCT, schedule), arrays, {"M": 32, "K": 64, "N": 20}, (None, 0, 1)) is None


def test_planted_bugs_are_found() -> None:
    made = laid(ROWS, STEPS)
    (kernel,) = k.kernels(made.plan.steps)
    tried: set[str] = set()
    for mutant in mutants(kernel):
        if mutant.kind in ("barrier", "wait", "bytes", "made"):
            tried.add(mutant.kind)
            planted = replace(made, plan=replace(made.plan, steps=(k.Launch(mutant.kernel),)))
            assert wrong(planted, {"A": integers(16, 96)}, {"M": 16, "K": 96}, (None, 0, 1, 2)) is not None, mutant.what
    assert tried == {"barrier", "wait", "bytes", "made"}


REFUSED: Mapping[str, tuple[str, str, str]] = {
    "outside": (ROWS.replace("M % 8 == 0, ", ""), TILES, "the region may reach beyond `A`, which a bulk copy does not test"),
    "base": (ROWS.replace(" align(16)", ""), TILES, "`A` need not begin at a multiple of 16 bytes"),
    "row": (ROWS, TILES.replace("split(k, 32)", "split(k, 2)"), "a row of the region has 8 bytes, no multiple of 16"),
    "words": (ROWS, TILES.replace("via=bulk", "via=bulk, swizzle=32B"), "`stage` has `swizzle=` with `via=tma` or"),
    "step": (
        ROWS.replace("A: f32[M, K]", "A: f32[M, 2 * K]").replace("A[i, k]", "A[i, 2 * k + 1]"),
        TILES,
        "a row of the region has 252 bytes, no multiple of 16",
    ),
    "place": (
        ROWS.replace("A: f32[M, K]", "A: f32[M, K + 1]").replace("A[i, k]", "A[i, k + 1]"),
        TILES,
        "rows of the region need not begin at multiples of 16 bytes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, schedule, reason = REFUSED[name]
    assert reason in refusal(text, schedule).splitlines()[0]


def test_nvcc_makes_bulk_copies() -> None:
    assert "cp.async.bulk.shared::cluster.global.mbarrier" in binary(laid(ROWS, TILES), "sm_90a").ptx.decode()
