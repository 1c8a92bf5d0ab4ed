"""Sums of 8-bit floats by parts of 128 terms, which lanes add up in registers: found, proved, emulated, and their bound."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.planted import open_of, plain
from tests.proofs import undecided

from texpr.cli.bounds import bounds_of
from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.turns.terms import terms
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record

WGMMA = "wgmma_m64n128k32_f32_f8e4m3"
ONE = """
fn f(A: f8e4m3[M, K] align(16), B: f8e4m3[N, K] align(16)): f32[M, N]
    where K % 16 == 0
{
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[j, k] }
    } }
    return C
}
"""
PARTS = """
fn f(A: f8e4m3[M, 128 * K] align(16), B: f8e4m3[N, 128 * K] align(16)): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |p| {
            new part: f32 = 0.0
            seq 128 |k| reduce(part) { part += A[i, 128 * p + k] * B[j, 128 * p + k] }
            C[i, j] += part
        }
    } }
    return C
}
"""
SCALED = """
fn f(A: f8e4m3[M, 128 * K] align(16), a: f32[M, K], B: f8e4m3[128 * N, 128 * K] align(16), b: f32[N, K]): f32[M, 128 * N] {
    new C: f32[M, 128 * N]
    par M |i| { par 128 * N |j| {
        new c: f32 = 0.0
        seq K |p| reduce(c) {
            new part: f32 = 0.0
            seq 128 |k| reduce(part) { part += A[i, 128 * p + k] * B[j, 128 * p + k] }
            c += part * (a[i, p] * b[j / 128, p])
        }
        C[i, j] = c
    } }
    return C
}
"""
OPEN = SCALED.replace("128 * N", "N").replace("b: f32[N, K]", "b: f32[(N + 127) / 128, K]")
"""The last block has fewer columns."""
TWO = """
fn f(A: f8e5m2[M, K] align(16), B: f8e5m2[N, K] align(16), G: f8e5m2[N, K] align(16)): f32[M, N]
    where K % 16 == 0
{
    new C: f32[M, N]
    par M |i| { par N |j| {
        new x: f32 = 0.0
        new y: f32 = 0.0
        seq K |k| reduce(x, y) { x += A[i, k] * B[j, k]  y += A[i, k] * G[j, k] }
        C[i, j] = x - y
    } }
    return C
}
"""
BY_HAND = """
schedule f for sm_90a {
    split(k, 128) -> (ko, ki)
    partial(ko, at=ko) -> part
    split(i, 64) -> (bi, ii)
    split(j, 128) -> (bj, jj)
    reorder(bi, bj, ko, ii, jj)
    distribute(jj)
    distribute(ii)
    stage(C, at=bj, in=registers) -> acc
    stage(A, at=ko, in=shared, via=tma, swizzle=128B) -> As
    stage(B, at=ko, in=shared, via=tma, swizzle=128B) -> Bs
    mma(ii, jj, ki, wgmma_m64n128k32_f32_f8e4m3)
}
"""


class Case(Record):
    """A program, with M, N and K to run it at."""

    text: str
    sizes: tuple[tuple[int, int, int], ...]


CASES = {
    "one sum": Case(ONE, ((67, 13, 400), (1, 1, 16), (3, 5, 0), (130, 129, 128))),
    "by hand": Case(ONE + BY_HAND, ((67, 13, 272), (1, 1, 16), (3, 5, 0))),
    "parts of the text": Case(PARTS, ((67, 13, 3), (1, 1, 1), (3, 5, 0))),
    "parts with scales": Case(SCALED, ((67, 2, 2), (1, 1, 1), (3, 1, 0))),
    "parts with scales of open blocks": Case(OPEN, ((67, 150, 2), (1, 1, 1), (3, 130, 0))),
    "two sums": Case(TWO, ((67, 13, 272), (1, 1, 16), (3, 5, 0))),
}


@cache
def compiled(name: str) -> Compiled:
    function = parse(CASES[name].text)["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0] if function.schedules else "auto")


def arguments(name: str, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Whole numbers, so that all sums are exact, and powers of two as scales."""
    rng, found = np.random.default_rng(7), dict[str, np.ndarray]()
    for buffer in parse(CASES[name].text)["f"].params:
        shape = tuple(e.evaluate({s: sizes[s.name] for s in e.syms()}) for e in buffer.shape)
        value = rng.integers(-3, 4, shape) if buffer.dtype.bytes == 1 else 2.0 ** rng.integers(-2, 3, shape)
        kind = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f32": np.float32}
        found[buffer.name] = value.astype(kind[buffer.dtype.name])
    return found


@pytest.mark.parametrize("name", CASES)
def test_taken_and_proved(name: str) -> None:
    made = compiled(name)
    assert terms(made.plan) == {(WGMMA if name != "two sums" else next(iter(terms(made.plan)))): 128}
    assert [*undecided(made.function, made.plan)] == []


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    made = compiled(name)
    for at in CASES[name].sizes:
        sizes = dict(zip("MNK", at, strict=True))
        given = arguments(name, sizes)
        wanted = run(parse(CASES[name].text)["f"], given, sizes)
        for seed in (None, 1):
            ran = run_plan(made.function, made.plan, given, sizes, seed=seed)
            assert not ran.reports, (sizes, ran.reports[0])
            np.testing.assert_array_equal(ran.arrays["C"], wanted["C"], str(sizes))


@pytest.mark.parametrize(("depth", "parts"), [(128, False), (144, True), (None, True)])
def test_short_sums_have_no_parts(depth: int | None, parts: bool) -> None:
    made = lower(parse(ONE)["f"], "sm_90a", {} if depth is None else {"K": depth}, schedule="auto")
    assert made.schedule is not None
    assert any(each.name == "partial" for each in made.schedule.directives) == parts
    assert any(each.name == "mma" for each in made.schedule.directives)


def test_others_keep_their_bits() -> None:
    made = lower(parse(ONE.replace("f8e4m3", "bf16"))["f"], "sm_90a", schedule="auto")
    assert made.schedule is not None and all(each.name != "partial" for each in made.schedule.directives)
    assert terms(made.plan) == {}


def test_the_bound_is_that_of_parts() -> None:
    """What 4096 terms lose at most: 5 steps, and one addition a term; as one sum it is 129."""
    plan, sizes = compiled("one sum").plan, {"M": 1, "N": 1, "K": 4096}
    rng = np.random.default_rng(1)
    given = {name: rng.standard_normal((1, 4096)).astype(ml_dtypes.float8_e4m3fn) for name in "AB"}
    whole = parse_plan(plan_text(plan).replace("part_C[4 * r_3", "part_C[4 * 0"))
    near, far = (bounds_of(parse(ONE)["f"], each, given, sizes)["C"].relative for each in (plan, whole))
    assert near < 0.05 and far > 20 * near


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("part_C[4 * r_3 + 2 * r_4 + r_5] = 0:f32", "part_C[4 * r_3 + 2 * r_4 + r_5] = 1:f32"),
        ("for r_3 in 0..16", "for r_3 in 0..15"),
        ("part_C[4 * r_3 + 2 * r_4 + r_5] =", "part_C[2 * r_3 + 2 * r_4 + r_5] ="),
        ("for k_i_o in 0..4", "for k_i_o in 0..K"),
    ],
)
def test_terms_are_not_known_where_a_sum_does_not_begin_anew(old: str, new: str) -> None:
    text = plan_text(compiled("one sum").plan)
    assert old in text
    assert terms(parse_plan(text.replace(old, new))) == {}


def test_all_that_add_to_one_sum_are_its_terms() -> None:
    """A plan whose product stands there twice has parts of twice as many."""
    lines = plan_text(compiled("one sum").plan).splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.lstrip().startswith("start ")]
    again = "\n".join([*lines[: at + 1], *lines[at:]]) + "\n"
    assert terms(parse_plan(again)) == {WGMMA: 256}


class Bug(Record):
    """`old` becomes `new` in the plan of one sum. `shown`: numbers are others then, or a fault is found."""

    old: str
    new: str
    shown: bool = True


ZERO = "part_C[4 * r_3 + 2 * r_4 + r_5] = 0:f32"
KEPT, PART = "C_acc[0, 4 * r_6 + 2 * r_7 + r_8]", "part_C[4 * r_6 + 2 * r_7 + r_8]"
ADDED = f"({KEPT} + {PART})"
WAIT = "            wait_warpgroup 0 holds part_C[0] 64 read\n"
BUGS = {
    "parts that begin where the last ended": Bug(ZERO, "part_C[4 * r_3 + 2 * r_4 + r_5] = part_C[4 * r_3 + 2 * r_4 + r_5]"),
    "parts that begin with one": Bug(ZERO, ZERO.replace("= 0", "= 1")),
    "parts begun in part": Bug("for r_3 in 0..16", "for r_3 in 0..15"),
    "added before it is waited for": Bug(WAIT, ""),
    "added while the product goes on": Bug(WAIT, WAIT.replace("group 0", "group 1")),
    "another register": Bug(ADDED, f"({KEPT} + {PART.replace('r_8', '1 - r_8')})"),
    "added twice": Bug(ADDED, f"({ADDED} + {PART})"),
    "subtracted": Bug(ADDED, f"({KEPT} - {PART})"),
    "not added": Bug(f"= {ADDED}", f"= {KEPT}"),
    "some not added": Bug("for r_6 in 0..16", "for r_6 in 0..15"),
    "a fence of some registers": Bug("fence_warpgroup part_C[0] 64", "fence_warpgroup part_C[0] 32"),
    "no fence": Bug("            fence_warpgroup part_C[0] 64 read\n", ""),
    "three slices of four": Bug("for k_i_o in 0..4", "for k_i_o in 0..3"),
    "a slot before": Bug("A_s[((k_o + 1) % 4), 64", "A_s[((k_o + 2) % 4), 64"),
    "sums that do not begin": Bug("C_acc[0, 4 * r + 2 * r_1 + r_2] = 0.0:f32", "C_acc[0, 4 * r + 2 * r_1 + r_2] = 1.0:f32"),
    "a turn too few": Bug("for k_o in 0..((K + 127) / 128) + 3", "for k_o in 0..((K + 127) / 128) + 2"),
    "stored from a part": Bug("] = C_acc[0, 2 * r_10 + r_11 + 4 * r_9]", "] = part_C[2 * r_10 + r_11 + 4 * r_9]"),
}  # fmt: skip


def planted(name: str) -> str:
    text = plain(compiled("one sum").plan)
    assert BUGS[name].old in text, text
    return text.replace(BUGS[name].old, BUGS[name].new)


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert open_of(compiled("one sum"), parse_plan(planted(name)))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_the_emulator_shows_it(name: str) -> None:
    made, sizes = compiled("one sum"), {"M": 67, "N": 127, "K": 272}
    given = arguments("one sum", sizes)
    wanted = run(parse(ONE)["f"], given, sizes)["C"]
    try:
        for seed in (None, 1, 2):
            ran = run_plan(made.function, parse_plan(planted(name)), given, sizes, seed=seed)
            if ran.reports or not np.array_equal(ran.arrays["C"], wanted):
                return
    except (CompilerBug, AssertionError):
        return  # it cannot even be printed, or launched
    pytest.fail("nothing shows it")


def test_what_is_right_is_proved() -> None:
    made = compiled("one sum")
    assert not open_of(made, parse_plan(plain(made.plan)))


def test_columns_that_there_are_not_are_scaled_too() -> None:
    """Nothing is out of bounds there, and nobody reads it: no comparison of each column lives through all turns."""
    scaled = next(line for line in compiled("parts with scales of open blocks").source.splitlines() if "tx_muladd(" in line)
    lines = compiled("parts with scales of open blocks").source.splitlines()
    around = "".join(lines[lines.index(scaled) - 4 : lines.index(scaled)])
    assert "< M)" in around and "< N)" not in around


@pytest.mark.parametrize("name", ["one sum", "parts with scales", "parts with scales of open blocks"])
def test_machine_code(name: str) -> None:
    """Four products a part, in a loop or not, and nothing spilled."""
    found = built(compiled(name).source, "sm_90a")
    assert spills_nothing(found) and len(re.findall(r"QGMMA\.64x128x32\.F32\.E4M3\.E4M3", code_of(found))) in (1, 4)
