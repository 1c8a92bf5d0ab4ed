"""Products that sum up in 16 bits go to tensor cores that sum up in f32, and lose nothing there."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.proofs import undecided

from texpr.driver import Compiled, lower, parse
from texpr.explain.planned import left
from texpr.interp import run
from texpr.ir.kernel.text import plan_text
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful

LOCAL = """
fn f(A: bf16[M, K] align(16), B: bf16[N, K] align(16), bias: bf16[N]): bf16[M, N]
    where K % 8 == 0
{
    new C: bf16[M, N]
    par M |i| { par N |j| {
        new s: bf16 = 0.0
        seq K |k| reduce(s) { s += A[i, k] * B[j, k] }
        C[i, j] = max(s + bias[j], 0.0)
    } }
    return C
}
"""
RESULT = """
fn f(A: f16[M, K] align(16), B: f16[K, N] align(16)): f16[M, N]
    where K % 8 == 0, N % 8 == 0
{
    new C: f16[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}
"""
ADDED = """
fn f(A: f16[M, K] align(16), B: f16[K, N] align(16), inout C: f16[M, N])
    where K % 8 == 0, N % 8 == 0
{
    par M |i| { par N |j| { seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] } } }
}
"""
TEXTS = {"local": LOCAL, "result": RESULT, "added": ADDED}
KINDS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}


@cache
def compiled(name: str, target: str) -> Compiled:
    made = lower(parse(TEXTS[name])["f"], target, schedule="auto")
    return made.wide or made


@pytest.mark.parametrize(("name", "target"), [(name, target) for name in TEXTS for target in ("sm_80", "sm_90a")])
def test_taken_and_proved(name: str, target: str) -> None:
    made = compiled(name, target)
    used = "instr mma_m16n8k16_f32_" if target == "sm_80" else "instr wgmma_m64n256k16_f32_"
    assert used in plan_text(made.plan) and left(made) == []
    assert [*undecided(made.function, made.plan)] == []
    assert made.written is not None
    proof = faithful(made.written, made.function)
    assert [*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)] == []


@pytest.mark.parametrize(("name", "target"), [(name, target) for name in TEXTS for target in ("sm_80", "sm_90a")])
def test_emulated(name: str, target: str) -> None:
    made, rng = compiled(name, target), np.random.default_rng(2)
    for sizes in ({"M": 70, "N": 24, "K": 40}, {"M": 1, "N": 8, "K": 8}, {"M": 3, "N": 8, "K": 0}):
        shapes = {b: [e.evaluate({s: sizes[s.name] for s in e.syms()}) for e in b.shape] for b in made.function.params}
        given = {b.name: rng.integers(-2, 3, shape).astype(KINDS[b.dtype.name]) for b, shape in shapes.items()}
        wanted = run(parse(TEXTS[name])["f"], given, sizes)["C"]
        ran = run_plan(made.function, made.plan, {key: value.copy() for key, value in given.items()}, sizes, seed=1)
        assert not ran.reports, (sizes, ran.reports[0])
        np.testing.assert_array_equal(ran.arrays["C"], wanted, str(sizes))


def test_nothing_is_lost_that_f16_would_lose() -> None:
    """2304 terms of 1 are 2304, and one after the other in f16 2048, where one more is lost."""
    made, sizes = compiled("result", "sm_80"), {"M": 1, "N": 8, "K": 2304}
    given = {"A": np.ones((1, 2304), np.float16), "B": np.ones((2304, 8), np.float16)}
    assert (run_plan(made.function, made.plan, given, sizes).arrays["C"] == 2304).all()


def test_machine_code() -> None:
    code = code_of(binary := built(compiled("local", "sm_80").source, "sm_80"))
    assert "HMMA.16816.F32.BF16" in code and spills_nothing(binary)
