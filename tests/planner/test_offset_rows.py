"""Products of rows that begin where data say, so many as data say, as of experts whose tokens are sorted: on tensor cores."""

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

HEAD = """
fn f(A: bf16[T, K] align(16), first: i32[E + 1], I: i32[R], B: bf16[E, K, N] align(16), inout C: f32[R, N])
    where N % 8 == 0, K % 8 == 0
    assume I in 0..T, first in 0..R + 1, monotone(first)
{
"""
ADDED = f"""{HEAD}
    par E |e| {{ par first[e + 1] - first[e] |m| {{ par N |n| {{ seq K |k| reduce(C) {{
        C[first[e] + m, n] += A[I[first[e] + m], k] * B[e, k, n]
    }} }} }} }}
}}
"""
"""Rows by a table, added to what there is."""
STORED = f"""{HEAD}
    par E |e| {{ par first[e + 1] - first[e] |m| {{ par N |n| {{
        new s: f32 = 0.0
        seq K |k| reduce(s) {{ s += A[I[first[e] + m], k] * B[e, k, n] }}
        C[first[e] + m, n] = s
    }} }} }}
}}
"""
SORTED = """
fn f(A: f16[R, K] align(16), first: i32[E + 1], w: f32[R], B: f16[E, N, K] align(16), inout C: f16[R, N])
    where K % 8 == 0
    assume first in 0..R + 1, monotone(first)
{
    par E |e| { par N |n| { par first[e + 1] - first[e] |m| {
        new s: f32 = 0.0
        seq K |k| reduce(s) { s += A[first[e] + m, k] * B[e, n, k] }
        C[first[e] + m, n] = f16(s * w[first[e] + m])
    } } }
}
"""
"""Rows one after the other, scaled each; columns around them."""
COUNTED = """
fn f(A: bf16[E, M, K] align(16), count: i32[E], B: bf16[E, N, K] align(16), inout C: f32[E, M, N])
    where K % 8 == 0
    assume count in 0..M + 1
{
    par E |e| { par count[e] |m| { par N |n| {
        new s: f32 = 0.0
        seq K |k| reduce(s) { s += A[e, m, k] * B[e, n, k] }
        C[e, m, n] = s
    } } }
}
"""
"""A number of rows for each expert, of as many as fit."""
FIXED = """
fn f(A: bf16[T, K] align(16), first: i32[E], I: i32[R + 100], B: bf16[E, K, N] align(16)): f32[E, 100, N]
    where N % 8 == 0, K % 8 == 0
    assume I in 0..T, first in 0..R
{
    new C: f32[E, 100, N]
    par E |e| { par 100 |m| { par N |n| {
        new s: f32 = 0.0
        seq K |k| reduce(s) { s += A[I[first[e] + m], k] * B[e, k, n] }
        C[e, m, n] = s
    } } }
    return C
}
"""
"""As many rows for each, which begin anywhere."""

TEXTS = {"added": ADDED, "stored": STORED, "sorted": SORTED, "counted": COUNTED, "fixed": FIXED}
SIZES: tuple[tuple[Mapping[str, int], list[int]], ...] = (
    ({"T": 7, "K": 40, "E": 3, "R": 150, "M": 140, "N": 24}, [2, 2, 131, 140]),
    ({"T": 3, "K": 8, "E": 2, "R": 5, "M": 5, "N": 8}, [0, 3, 5]),
    ({"T": 3, "K": 0, "E": 1, "R": 2, "M": 2, "N": 8}, [0, 1]),
)
"""Sizes, and where each expert's rows begin: one has none, one more than a tile, and there are rows of nobody."""


@cache
def compiled(name: str, target: str = "sm_80") -> Compiled:
    made = lower(parse(TEXTS[name])["f"], target, schedule="auto")
    return made.wide or made


def sizes_of(name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    return {size.name: sizes[size.name] for size in parse(TEXTS[name])["f"].sizes}


def arguments(name: str, sizes: Mapping[str, int], first: list[int]) -> dict[str, np.ndarray]:
    """Small integers."""
    rng, found = np.random.default_rng(5), dict[str, np.ndarray]()
    for buffer in parse(TEXTS[name])["f"].params:
        shape = tuple(e.evaluate({s: sizes[s.name] for s in e.syms()}) for e in buffer.shape)
        value = rng.integers(-3, 4, shape)
        if buffer.dtype.name == "i32":
            value = rng.integers(0, sizes.get("T", 1), shape)
        if buffer.name in ("first", "count"):
            value = np.array(first[: shape[0]] if buffer.name == "first" else np.diff(first))
        kinds = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "i32": np.int32}
        found[buffer.name] = value.astype(kinds[buffer.dtype.name])
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_taken_and_proved(name: str) -> None:
    made = compiled(name)
    text = plan_text(made.plan)
    assert "instr mma_m16n8k16_f32_" in text and "copy A_s[" in text and left(made) == []
    assert ("grid.x n_b" in text and "grid.y e < E" in text) or name == "fixed"
    assert [*undecided(made.function, made.plan)] == []
    assert made.written is not None
    proof = faithful(made.written, made.function)
    assert [*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)] == []


@pytest.mark.parametrize("name", TEXTS)
def test_emulated(name: str) -> None:
    made = compiled(name)
    for sizes, first in SIZES:
        given, own = arguments(name, sizes, first), sizes_of(name, sizes)
        wanted = run(parse(TEXTS[name])["f"], given, own)["C"]
        for seed in (None, 1):
            ran = run_plan(made.function, made.plan, {key: value.copy() for key, value in given.items()}, own, seed=seed)
            assert not ran.reports, (own, ran.reports[0])
            np.testing.assert_array_equal(ran.arrays["C"], wanted, str(own))


@pytest.mark.parametrize("name", ["added", "sorted"])
def test_machine_code(name: str) -> None:
    """Rows come by asynchronous copies of 16 bytes, with zeros where there are none."""
    code = code_of(binary := built(compiled(name).source, "sm_80"))
    assert "LDGSTS.E" in code and ".128" in code and "HMMA.16816.F32" in code and spills_nothing(binary)


def test_on_hopper_by_warps() -> None:
    """The engine copies no rows that begin where data say."""
    made = compiled("stored", "sm_90a")
    assert "instr mma_m16n8k16_f32_bf16 [" in plan_text(made.plan) and left(made) == []
    assert [*undecided(made.function, made.plan)] == []


def reason(text: str) -> str:
    (told,) = left(lower(parse(text)["f"], "sm_80", schedule="auto"))
    return str(told["reason"])


def test_others_are_told_why() -> None:
    """An offset that is another one for each term is none of a tile; and types are what they are."""
    moving = SORTED.replace("A[first[e] + m, k]", "A[first[e] + m, at[k]]").replace(
        "first: i32[E + 1]", "first: i32[E + 1], at: i32[K]"
    )
    told = reason(moving.replace("monotone(first)", "monotone(first), at in 0..K"))
    assert told.startswith("it is a product of matrices, but stage(A, ") and "its column depends on that" in told
    assert (
        reason(SORTED.replace("f16", "f32"))
        == "no instruction of sm_80 multiplies f32 by f32 into f32, unless the text says `tf32`"
    )


def test_rounded_factors_are_computed_or_written_first() -> None:
    """Lanes round what they multiply where the text says `tf32`; an array of it is taken, too."""
    text = """fn f(A: f32[M, K], B: f32[N, K]): f32[M, N] where K % 32 == 0 {{
    {}
    new C: f32[M, N]
    par M, N |i, j| {{ C[i, j] = 0.0  seq K |k| reduce(C) {{ C[i, j] += {} * {} }} }}
    return C
}}"""
    assert left(lower(parse(text.format("", "tf32(A[i, k])", "tf32(B[j, k])"))["f"], "sm_80", schedule="auto")) == []
    own = "".join(
        f"new {to}: tf32[{rows}, K]  par {rows}, K |r, c| {{ {to}[r, c] = tf32({of}[r, c]) }}  "
        for to, of, rows in (("a", "A", "M"), ("b", "B", "N"))
    )
    assert left(lower(parse(text.format(own, "a[i, k]", "b[j, k]"))["f"], "sm_80", schedule="auto")) == []


BUGS = {
    "rows of the next expert": ("if", "< i64(first_at - first_at'1)", "< i64(first_at - first_at'1 + 1)"),
    "no rows are the last": ("if", "< i64(first_at - first_at'1)", "< i64(R)"),
    "the next offset": ("let first_from", "first[e]", "first[e + 1]"),
    "no offset": ("let first_from", "first[e]", "first[0]"),
    "an offset more": ("copy A_s[", "I[A_s_0", "I[1 + A_s_0"),
    "another row": ("copy A_s[", "I[A_s_0", "I[0 * A_s_0"),
    "another column": ("copy A_s[", "8 * A_s_1_o + 32 * k_o", "8 * A_s_1_o + 31 * k_o"),
    "no table": ("copy A_s[", "A[I'd4,", "A[0,"),
    "half of a chunk": ("copy A_s[", "count 8", "count 4"),
    "rows beyond the table": ("if", "< i64(R))", "< i64(R + 1))"),
    "no fill": ("vector A_s[", "0:bf16", "1:bf16"),
    "another expert": ("copy B_s[", "B[e,", "B[0,"),
    "a row of results": ("C[", "C[first", "C[1 + first"),
    "another expert's results": ("C[", "= first[e]", "= first[e + 1]"),
    "fewer rows of tiles": ("for m_b", "+ 127", "+ 126"),
    "a turn early": ("wait 1", "wait 1", "wait 2"),
}
"""How the line begins, and what becomes what in it."""


def planted(name: str) -> str:
    return changed(plain(compiled("stored").plan), *BUGS[name])


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert open_of(compiled("stored"), parse_plan(planted(name)))


@pytest.mark.planted
@pytest.mark.parametrize("name", sorted(BUGS.keys() - {"no fill"}))  # the other operand has zeros there
def test_the_emulator_shows_it(name: str) -> None:
    made, (sizes, first) = compiled("stored"), SIZES[0]
    given, own = arguments("stored", sizes, first), sizes_of("stored", sizes)
    wanted = run(parse(STORED)["f"], given, own)["C"]
    try:
        runs = [
            run_plan(
                made.function, parse_plan(planted(name)), {key: value.copy() for key, value in given.items()}, own, seed=seed
            )
            for seed in (None, 1)
        ]
    except CompilerBug:
        return
    assert any(ran.reports or not np.array_equal(ran.arrays["C"], wanted) for ran in runs)
