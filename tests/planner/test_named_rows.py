"""Products of rows that a table names, as of experts, on tensor cores: threads look rows up as they copy them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.planted import changed, open_of, plain
from tests.proofs import undecided

from texpr.driver import Compiled, lower, parse
from texpr.explain.planned import left
from texpr.interp import run
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful
from texpr.support.diagnostic import CompilerBug

ROWS = """
fn f(A: bf16[T, 64 * K] align(16), I: i32[64 * M], B: bf16[N, 64 * K] align(16)): f32[64 * M, N]
    assume I in 0..T
{
    new C: f32[64 * M, N]
    par 64 * M |m| { par N |n| {
        new s: f32 = 0.0
        seq 64 * K |k| reduce(s) { s += A[I[m], k] * B[n, k] }
        C[m, n] = s
    } }
    return C
}
"""
EXPERTS = """
fn f(A: bf16[T, 32 * K] align(16), I: i32[E, 128 * M], B: bf16[E, 32 * K, N] align(16)): f32[E, 128 * M, N]
    where N % 8 == 0
    assume I in 0..T
{
    new C: f32[E, 128 * M, N]
    par E |e| { par 128 * M |m| { par N |n| {
        new s: f32 = 0.0
        seq 32 * K |k| reduce(s) { s += A[I[e, m], k] * B[e, k, n] }
        C[e, m, n] = s
    } } }
    return C
}
"""
RAGGED = """
fn f(A: bf16[T, K] align(16), I: i32[M], B: bf16[N, K] align(16)): f32[M, N]
    where K % 8 == 0
    assume I in 0..T
{
    new C: f32[M, N]
    par M |m| { par N |n| {
        new s: f32 = 0.0
        seq K |k| reduce(s) { s += A[I[m], k] * B[n, k] }
        C[m, n] = s
    } }
    return C
}
"""
CASES: Mapping[str, tuple[str, tuple[Mapping[str, int], ...]]] = {
    "rows": (ROWS, ({"T": 9, "K": 2, "M": 2, "N": 13}, {"T": 1, "K": 1, "M": 1, "N": 1}, {"T": 4, "K": 0, "M": 1, "N": 2})),
    "ragged": (
        RAGGED,
        ({"T": 5, "K": 40, "M": 77, "N": 13}, {"T": 1, "K": 8, "M": 1, "N": 1}, {"T": 4, "K": 0, "M": 3, "N": 2}),
    ),
    "experts": (EXPERTS, ({"T": 5, "K": 4, "E": 2, "M": 1, "N": 72}, {"T": 3, "K": 1, "E": 1, "M": 2, "N": 8})),
}
"""A text, and sizes to run it at."""


@cache
def compiled(name: str, target: str = "sm_80") -> Compiled:
    made = lower(parse(CASES[name][0])["f"], target, schedule="auto")
    return made.wide or made


def arguments(name: str, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Small integers; rows come in any order, and again."""
    rng, found = np.random.default_rng(5), dict[str, np.ndarray]()
    for buffer in parse(CASES[name][0])["f"].params:
        shape = tuple(e.evaluate({s: sizes[s.name] for s in e.syms()}) for e in buffer.shape)
        whole = buffer.dtype.name == "i32"
        value = rng.integers(0, sizes["T"], shape) if whole else rng.integers(-3, 4, shape)
        found[buffer.name] = value.astype(np.int32 if whole else ml_dtypes.bfloat16)
    return found


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_taken_and_proved(name: str, target: str) -> None:
    made = compiled(name, target)
    text = plan_text(made.plan)
    assert "instr mma_m16n8k16_f32_bf16 [" in text and "copy A_s[" in text and "I'd1 = I[" in text and left(made) == []
    assert [*undecided(made.function, made.plan)] == []
    assert made.written is not None
    proof = faithful(made.written, made.function)
    assert [*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)] == []


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    made = compiled(name)
    for sizes in CASES[name][1]:
        given = arguments(name, sizes)
        wanted = run(parse(CASES[name][0])["f"], given, sizes)["C"]
        for seed in (None, 1):
            ran = run_plan(made.function, made.plan, given, sizes, seed=seed)
            assert not ran.reports, (sizes, ran.reports[0])
            np.testing.assert_array_equal(ran.arrays["C"], wanted, str(sizes))


def test_machine_code() -> None:
    """Rows come by asynchronous copies of 16 bytes, whose addresses threads look up."""
    code = code_of(binary := built(compiled("rows").source, "sm_80"))
    assert "LDGSTS.E" in code and ".128" in code and "HMMA.16816.F32.BF16" in code and spills_nothing(binary)


BUGS = {
    "another table element": ("copy A_s[", "I'd1 = I[A_s_0 +", "I'd1 = I[0 * A_s_0 +"),
    "another column": ("copy A_s[", "A[I'd1, 8 * A_s_1_o +", "A[I'd1, 0 * A_s_1_o +"),
    "no table": ("copy A_s[", "A[I'd1, 8", "A[0, 8"),
    "half of a chunk": ("copy A_s[", "count 8", "count 4"),
    "another slot": ("copy A_s[", "A_s[(k_o % 3), A_s_0", "A_s[((k_o + 1) % 3), A_s_0"),
    "a row further": ("copy A_s[", "A_s[(k_o % 3), A_s_0", "A_s[(k_o % 3), (A_s_0 + 1) % 64"),
    "a turn early": ("wait 1", "wait 1", "wait 2"),
}
"""How the line begins, and what becomes what in it."""


def planted(name: str) -> str:
    return changed(plain(compiled("rows").plan), *BUGS[name])


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert open_of(compiled("rows"), parse_plan(planted(name)))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_the_emulator_shows_it(name: str) -> None:
    made, sizes = compiled("rows"), {"T": 9, "K": 4, "M": 2, "N": 13}
    given = arguments("rows", sizes)
    wanted = run(parse(ROWS)["f"], given, sizes)["C"]
    try:
        runs = [run_plan(made.function, parse_plan(planted(name)), given, sizes, seed=seed) for seed in (None, 1)]
    except CompilerBug:
        return
    assert any(ran.reports or not np.array_equal(ran.arrays["C"], wanted) for ran in runs)
