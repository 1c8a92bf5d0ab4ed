"""Rows that the engine copies without a map (`via=bulk`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tests.lowering import machine
from tests.lowering.mutants import mutants
from tests.schedule.laid import binary, integers, laid, refusal, wrong

from texpr.ir import kernel as k
from texpr.support.record import replace

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


RAGGED = ROWS.replace("M % 8 == 0, K % 32 == 0", "K % 4 == 0")


@pytest.mark.parametrize("schedule", [TILES, STEPS], ids=["tiles", "steps"])
def test_what_is_beyond_the_tensor_is_not_copied(schedule: str) -> None:
    """As many rows as there are, and as much of each, are copied, and waited for."""
    made = laid(RAGGED, schedule)
    for rows, columns in ((24, 64), (13, 36), (1, 4), (0, 32), (8, 0), (17, 100)):
        assert wrong(made, {"A": integers(rows, columns)}, {"M": rows, "K": columns}, (None, 0, 1)) is None, (rows, columns)
    (expect,) = (s for s in made.statements if isinstance(s, k.BarrierExpect))
    assert expect.bytes == 8 * 32 * 4 and expect.exactly is not None
    arrays = {"A": integers(13, 36)}
    got = machine.run(made.function, made.plan, arrays, {"M": 13, "K": 36}, 1)["C"]
    assert np.array_equal(got, arrays["A"].T)


def test_rows_that_follow_each_other_are_one_run() -> None:
    made = laid(SUM, "split(i, 16) -> (b, t)  bind(b, grid.x)  stage(x, at=b, via=bulk) -> rows")
    (run,) = (s for s in made.statements if isinstance(s, k.CopyBulk))
    assert run.count == 16 * 64
    assert not any(isinstance(s, k.For) and run in k.walk(s.body) for s in made.statements)
    for rows in (0, 1, 16, 37):
        assert wrong(made, {"x": integers(rows, 64, dtype="float16")}, {"n": rows}, (None, 0)) is None


def test_rows_may_lie_apart_in_shared_memory() -> None:
    made = laid(ROWS, TILES + "  resize(As.d1, 0, 4)")
    assert wrong(made, {"A": integers(16, 64)}, {"M": 16, "K": 64}, (None, 0)) is None


MEMORY = {
    "swizzle(As.d0, As.d1, xor=8)": "elements of a row of `As` are no neighbours in memory",
    "reorder(As.d1, As.d0)": "elements of a row of `As` are no neighbours in memory",
    "resize(As.d1, 0, 1)": "runs of `As` need not begin at multiples of 16 bytes",
}


@pytest.mark.parametrize("directive", MEMORY)
def test_rows_in_other_places_are_refused(directive: str) -> None:
    assert MEMORY[directive] in refusal(ROWS, f"{TILES} {directive}").splitlines()[0]


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


@pytest.mark.parametrize("text", [ROWS, RAGGED], ids=["whole", "ragged"])
def test_planted_bugs_are_found(text: str) -> None:
    made = laid(text, STEPS)
    (kernel,) = k.kernels(made.plan.steps)
    rows, columns = (16, 96) if text is ROWS else (13, 92)
    tried: set[str] = set()
    for mutant in mutants(kernel):
        if mutant.kind in ("barrier", "wait", "bytes", "made", "length", "place"):
            tried.add(mutant.kind)
            planted = replace(made, plan=replace(made.plan, steps=(k.Launch(mutant.kernel),)))
            sizes = {"M": rows, "K": columns}
            assert wrong(planted, {"A": integers(rows, columns)}, sizes, (None, 0, 1, 2)) is not None, mutant.what
    assert tried == {"barrier", "wait", "bytes", "made", "length", "place"}


REFUSED: Mapping[str, tuple[str, str, str]] = {
    "outside": (
        ROWS.replace("K % 32 == 0", "K % 2 == 0")
        .replace("A: f32[M, K]", "A: f32[M, K] stride(L, 1)")
        .replace("M % 8", "L % 4"),
        TILES,
        "where the region reaches beyond `A`, the rest of a row need not be whole chunks of 16 bytes",
    ),
    "fill": (ROWS, TILES.replace("via=bulk", "via=bulk, fill=zero"), "a copy without a map fills nothing"),
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
