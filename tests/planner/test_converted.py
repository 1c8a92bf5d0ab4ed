"""Products one of whose factors lanes compute: weights of few bits that are converted and scaled in registers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.planner.programs import arrays_of
from tests.planted import changed, is_proved, plain
from tests.proofs import undecided

from texpr.driver import Compiled, lower, parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.support.diagnostic import CompilerBug

HEAD = "fn f(X: bf16[M, K] align(16), {}): {}[M, N] align(16) where K % {} == 0, N % 16 == 0 {{"
BODY = """
    new Y: {0}[M, N]
    par M, N |m, n| {{
        new y: f32 = 0.0
        seq K |k| reduce(y) {{ y += {1} }}
        Y[m, n] = {0}(y)
    }}
    return Y
}}
"""
SCALES = "scale: bf16[K / 128, N] align(16)"
HALF = "bitand(shr({}, 4 * (k % 2)), 15)"


def text(arrays: str, terms: str, of: str = "bf16", group: int = 128) -> str:
    return HEAD.format(arrays, of, group) + BODY.format(of, terms)


BY_COLUMNS, BY_ROWS = HALF.format("W[k / 2, n]"), HALF.format("W[n, k / 2]")
TEXTS = {
    "4 bits": text(
        f"W: u8[K / 2, N] align(16), {SCALES}, zero: bf16[K / 128, N] align(16)",
        f"X[m, k] * bf16((bf16({BY_COLUMNS}) - zero[k / 128, n]) * scale[k / 128, n])",
    ),
    "i8": text(f"W: i8[K, N] align(16), {SCALES}", "X[m, k] * bf16(bf16(W[k, n]) * scale[k / 128, n])"),
    "i8 first": text(f"W: i8[K, N] align(16), {SCALES}", "bf16(bf16(W[k, n]) * scale[k / 128, n]) * X[m, k]"),
    "i8 alone": text("W: i8[N, K] align(16)", "X[m, k] * bf16(W[n, k])", "f32", 64),
    "u8": text("W: u8[N, K] align(16), z: bf16[N] align(16)", "X[m, k] * bf16(bf16(W[n, k]) - z[n])", "f32", 64),
    "4 bits by rows": text(
        "W: u8[N, K / 2] align(16), scale: f32[N, K / 64] align(16)",
        f"X[m, k] * bf16(f32(i32({BY_ROWS}) - 8) * scale[n, k / 64])",
    ),
    "f8": text("W: f8e4m3[N, K] align(16), scale: bf16[N] align(16)", "X[m, k] * bf16(bf16(W[n, k]) * scale[n])", group=64),
    "normed": """
fn f(X: bf16[M, K] align(16), g: bf16[K] align(16), W: bf16[K, N] align(16)): f32[M, N] align(16)
    where K % 64 == 0, N % 16 == 0
{
    new Y: f32[M, N]
    new r: f32[M]
    par M |i| {
        new s: f32 = 0.0
        seq K |k| reduce(s) { s += X[i, k] * X[i, k] }
        r[i] = s + 1.0
    }
    par M, N |m, n| {
        new y: f32 = 0.0
        seq K |k| reduce(y) { y += bf16(f32(X[m, k]) * r[m] * f32(g[k])) * W[k, n] }
        Y[m, n] = y
    }
    return Y
}
""",
}
FOUND = {"sm_90a": "_f32_bf16_ar", "sm_80": "mma_m16n8k16_f32_bf16"}


@cache
def compiled(name: str, target: str) -> Compiled:
    return lower(parse(TEXTS[name])["f"], target, schedule="auto")


def instructions(made: Compiled) -> set[str]:
    found = (op for kernel in k.kernels(made.plan.steps) for op in k.walk(kernel.body))
    return {op.name for op in found if isinstance(op, k.Collective)}


@pytest.mark.parametrize("target", FOUND)
@pytest.mark.parametrize("name", TEXTS)
def test_lanes_compute_for_an_instruction(name: str, target: str) -> None:
    made = compiled(name, target)
    assert any(each.endswith(FOUND[target]) or f"{FOUND[target]}_bn" in each for each in instructions(made))
    assert list(undecided(made.function, made.plan)) == []


@pytest.mark.parametrize("target", FOUND)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("sizes", [{"M": 40, "K": 384, "N": 144}, {"M": 1, "K": 128, "N": 16}, {"M": 3, "K": 0, "N": 16}])
def test_emulated(name: str, target: str, sizes: Mapping[str, int]) -> None:
    made = compiled(name, target)
    given = arrays_of(parse(TEXTS[name])["f"], sizes)
    ran = run_plan(made.function, made.plan, given, sizes)
    assert ran.reports == []
    assert np.array_equal(interpret(parse(TEXTS[name])["f"], given, sizes)["Y"], results(made.function, ran)["Y"])


BUGS = {
    "the other half of a byte": ("a[", "u8(4 * (r_5 % 2))", "u8(4 * ((r_5 + 1) % 2))"),
    "a bit less": ("a[", "15:u8", "7:u8"),
    "the scale of a neighbouring group": ("tensor load scale_s[", "(k_o / 2)]", "((k_o + 1) / 2)]"),
    "the scale of another column": (
        "a[",
        "* scale_s[((k_o + 2) % 4), (lane_1 / 128), 0, 8 * r_4",
        "* scale_s[((k_o + 2) % 4), (lane_1 / 128), 0, 0 * r_4",
    ),
    "no zero point": (
        "a[",
        "- zero_s[((k_o + 2) % 4), (lane_1 / 128), 0, 8 * r_4 + 16 * ((lane_1 / 32) % 4) + ((lane_1 / 4) % 8)]",
        "- 0.0:bf16",
    ),
    "scale and zero point exchanged": ("a[", "- zero_s[", "- scale_s["),
    "a fragment permuted": ("a[8 *", "+ 4 * r_3 + 2 * r_4 + r_5]", "+ 2 * r_3 + 4 * r_4 + r_5]"),
    "another fragment": ("start instr", "a[8 * k_i_o]", "a[0 * k_i_o]"),
    "terms of another step": ("start instr", "2 * k_i_o, 0] 8 desc", "0 * k_i_o, 0] 8 desc"),
    "no wait before fragments are written": (
        "wait_warpgroup 0 holds a",
        "wait_warpgroup 0 holds a[0] 32 read",
        "wait_warpgroup 1",
    ),
    "no fence of fragments": ("fence_warpgroup", "a[0] 32 read, ", ""),
}
"""How the line begins, and what becomes what in it."""


def planted(name: str) -> k.Plan:
    return parse_plan(changed(plain(compiled("4 bits", "sm_90a").plan), *BUGS[name]))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert not is_proved(compiled("4 bits", "sm_90a"), lambda: planted(name))


@pytest.mark.long
@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_the_emulator_shows_it(name: str) -> None:
    made, sizes, function = compiled("4 bits", "sm_90a"), {"M": 24, "K": 256, "N": 32}, parse(TEXTS["4 bits"])["f"]
    given = arrays_of(function, sizes)
    wanted = interpret(function, given, sizes)["Y"]
    for seed in (None, 1):
        try:
            ran = run_plan(made.function, planted(name), {key: value.copy() for key, value in given.items()}, sizes, seed=seed)
        except (CompilerBug, RuntimeError, AssertionError):  # of no form, not printed, or stopped
            return
        if ran.reports or not np.array_equal(ran.arrays["Y"], wanted):
            return
    pytest.fail("nothing is seen of it")


REAL = {"M": 512, "K": 4096, "N": 4096}


@pytest.mark.long
@pytest.mark.parametrize("name", ["i8", "4 bits", "4 bits by rows", "f8", "normed"])
@pytest.mark.parametrize("target", FOUND)
def test_machine_code(name: str, target: str) -> None:
    """Products are those of the plan; nothing is spilled, and ptxas waits for none by itself."""
    made = lower(parse(TEXTS[name])["f"], target, REAL, schedule="auto")
    code = code_of(binary := built(made.source, target))
    assert spills_nothing(binary)
    if target == "sm_90a":
        assert serialised(binary) == []
        assert code.count("HGMMA") == 4
    else:
        assert (found := code.count("HMMA.16816")) and found % 16 == 0
