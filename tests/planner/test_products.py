"""Products that the planner gives to instructions of a warp: which, by what schedule, and that numbers stay what they were."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.proofs import undecided
from tests.schedule.test_mma import arguments, product, used

from texpr.driver import Compiled, lower, parse
from texpr.explain import explain
from texpr.interp import run
from texpr.ir.program.text import print_schedule
from texpr.ir.proof import Verdict
from texpr.planner import copies
from texpr.planner.search import Candidate
from texpr.planner.strategies.products import Tile
from texpr.proof.schedule import faithful
from texpr.support.diagnostic import error
from texpr.toolchain.machine import this_machine

SIZES = ((100, 131, 37), (1, 1, 1), (16, 8, 0), (0, 3, 5), (17, 23, 64))

LINEAR = """
fn f(A: bf16[M, K], B: bf16[K, N], b: f32[N]): bf16[M, N] {
    new C: bf16[M, N]
    par M |i| { par N |j| {
        new acc: f32 = 0.0
        seq K |k| reduce(acc) { acc += A[i, k] * B[k, j] }
        C[i, j] = bf16(max(acc + b[j], 0.0))
    } }
    return C
}
"""
BATCHED = """
fn f(A: bf16[2, M, K], B: bf16[2, K, N]): f32[2, M, N] {
    new C: f32[2, M, N]
    par 2 |h| { par M |i| { par N |j| {
        C[h, i, j] = 0.0
        seq K |k| reduce(C) { C[h, i, j] += A[h, i, k] * B[h, k, j] }
    } } }
    return C
}
"""
CONV = """
fn f(A: bf16[2, M + 2, K], B: bf16[3, K, N]): f32[2, M, N] {
    new C: f32[2, M, N]
    par 2 |b| { par M |v| { par N |f| {
        C[b, v, f] = 0.0
        seq 3 |s| reduce(C) { seq K |c| reduce(C) { C[b, v, f] += A[b, v + s, c] * B[s, c, f] } }
    } } }
    return C
}
"""
PARALLEL = product(clause="reduce(C)").replace("seq K", "par K")

GOES_ON = """
fn f(A: bf16[M, K], B: bf16[K, N], inout C: f32[M, N]) {
    par M |i| { par N |j| { seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] } } }
}
"""

TAKEN = {
    "bf16": (product(), "mma_m16n8k16_f32_bf16"),
    "f16": (product("f16"), "mma_m16n8k16_f32_f16"),
    "f16 into f16": (product("f16", "f16"), "mma_m16n8k16_f32_f16"),
    "tf32": (product("tf32"), "mma_m16n8k8_f32_tf32"),
    "f64": (product("f64", "f64"), "mma_m8n8k4_f64_f64"),
    "i8": (product("i8", "i32", "i32(A[i, k]) * i32(B[k, j])"), "mma_m16n8k32_i32_i8"),
    "columns of A": (product(value="A[k, i] * B[k, j]").replace("A: bf16[M, K]", "A: bf16[K, M]"), "mma_m16n8k16_f32_bf16"),
    "rows of B": (product(value="A[i, k] * B[j, k]").replace("B: bf16[K, N]", "B: bf16[N, K]"), "mma_m16n8k16_f32_bf16"),
    "the other way": (product(value="B[k, j] * A[i, k]"), "mma_m16n8k16_f32_bf16"),
    "what follows": (LINEAR, "mma_m16n8k16_f32_bf16"),
    "batched": (BATCHED, "mma_m16n8k16_f32_bf16"),
    "a convolution": (CONV, "mma_m16n8k16_f32_bf16"),
    "in parallel": (PARALLEL, "mma_m16n8k16_f32_bf16"),
    "what goes on": (GOES_ON, "mma_m16n8k16_f32_bf16"),
    "bf16 into bf16": (product("bf16", "bf16"), "mma_m16n8k16_f32_bf16"),
}


def automatic(text: str, target: str = "sm_80", sizes: Mapping[str, int] | None = None) -> Compiled:
    return lower(parse(text)["f"], target, sizes, schedule="auto")


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    text, instr = TAKEN[name]
    made, function = automatic(text), parse(text)["f"]
    assert instr in used(made)
    for rows, columns, depth in SIZES:
        sizes = {"M": rows, "N": columns, "K": depth}
        given = arguments(made, sizes)
        wanted = run(function, given, sizes)
        for seed in (None, 1):
            found = run_plan(function, made.plan, given, sizes, seed=seed)
            assert not found.reports, sizes
            np.testing.assert_array_equal(found.arrays["C"], wanted["C"])


@pytest.mark.parametrize("name", TAKEN)
def test_proved(name: str) -> None:
    made = automatic(TAKEN[name][0])
    assert made.written is not None
    proof = faithful(made.written, made.function)
    assert [*chain(*(proof.of(verdict) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED)))] == []
    assert list(undecided(made.function, made.plan)) == []


LEFT = {
    "in order": product(clause=""),
    "f32": product("f32"),
    "a difference": product().replace("+=", "-="),
    "products of sums": product(value="(A[i, k] + A[i, k]) * B[k, j]"),
}


@pytest.mark.parametrize("name", LEFT)
def test_left(name: str) -> None:
    assert not used(automatic(LEFT[name]))


def test_what_lanes_cannot_tell_is_tiled_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused only when a schedule ends leaves the nest to other strategies."""

    def refuse(state: object) -> None:
        raise error("E0919", None, "nothing fits")

    monkeypatch.setattr(copies, "laid_out", refuse)
    made = automatic(product())
    assert made.planned is not None and made.schedule is not None
    (chosen,) = made.planned.nests
    assert not used(made) and isinstance(chosen.candidate, Candidate)
    assert any("mma(" in each and "nothing fits" in each for each in chosen.refused)


def test_a_target_without_warps() -> None:
    assert not used(automatic(product(), "cpu"))


def test_few_rows_go_to_no_tile() -> None:
    assert not used(automatic(product(), sizes={"M": 1, "N": 4096, "K": 4096}))
    assert used(automatic(product(), sizes={"M": 16, "N": 4096, "K": 4096}))


@pytest.mark.parametrize(("sizes", "rows", "columns"), [((4096, 4096), 128, 128), ((64, 4096), 32, 64), ((16, 4096), 16, 64)])
def test_tiles_fill_the_machine(sizes: tuple[int, int], rows: int, columns: int) -> None:
    made = automatic(product(), sizes={"M": sizes[0], "N": sizes[1], "K": 4096})
    assert made.planned is not None
    (chosen,) = made.planned.nests
    assert isinstance(chosen.candidate, Tile)
    assert (chosen.candidate.shape.rows, chosen.candidate.shape.columns) == (rows, columns)


def test_copies_are_as_wide_as_rows_allow() -> None:
    text = product(where="K % 8 == 0, N % 4 == 0").replace("K]", "K] align(16)", 1).replace("N])", "N] align(8))", 1)
    made = automatic(text)
    assert made.schedule is not None
    said = print_schedule(made.schedule, parse(text)["f"])
    assert "stage(A, via=cp_async" in said and "vectorize(A_s_1, 8)" in said
    assert "stage(B, via=cp_async" in said and "vectorize(B_s_1, 4)" in said
    plain = automatic(product())
    assert plain.schedule is not None, "rows that begin anywhere are copied to such that do not"
    said = print_schedule(plain.schedule, parse(product())["f"])
    assert all(f"stage({name}, in=global) -> {name}_g" in said and f"vectorize({name}_g_s_1, 8)" in said for name in "AB")


def test_explain_says_the_instruction_and_the_tile() -> None:
    data = explain(automatic(product()), this_machine())
    (nest,) = data["planned"]["nests"]
    assert nest["instruction"] == "mma_m16n8k16_f32_bf16" and nest["tile"] == {"i": 128, "j": 128, "k": 32}
    assert nest["warp"] == {"i": 64, "j": 64} and nest["stages"] == 3


GROUPED = """
fn f(X: bf16[B, H, W, G, C], K: bf16[3, 3, G, C, F]): bf16[B, H, W, G, F] {
    let Z = pad(X, (0, 1, 1, 0, 0), (0, 1, 1, 0, 0), 0.0)
    new Y: bf16[B, H, W, G, F]
    par B |b| { par H |p| { par W |q| { par G |g| { par F |f| {
        new total: f32 = 0.0
        seq 3 |r| reduce(total) { seq 3 |s| reduce(total) { seq C |c| reduce(total) {
            total += Z[b, p + r, q + s, g, c] * K[r, s, g, c, f]
        } } }
        Y[b, p, q, g, f] = bf16(total)
    } } } } }
    return Y
}
"""


@pytest.mark.parametrize(("channels", "left"), [(8, True), (128, False)])
def test_tiles_that_are_mostly_padding_are_left_to_threads(channels: int, left: bool) -> None:
    sizes = {"B": 32, "H": 28, "W": 28, "G": 4, "C": channels, "F": channels}
    made = lower(parse(GROUPED)["f"], "sm_90a", sizes, schedule="auto")
    assert made.planned is not None
    (chosen,) = made.planned.nests
    assert chosen.candidate is not None
    assert ("instruction" in chosen.candidate.data()) != left
    assert any("mostly padding" in each for each in chosen.refused) == left
