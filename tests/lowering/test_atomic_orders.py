"""Atomic updates of a scope and an order: from text to numbers and to machine code; those that do not hold are refused."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of
from tests.planted import open_of

from texpr.checks import check
from texpr.driver import Compiled, lower, parse
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program import Bind
from texpr.ir.program.marked import atomic_binds
from texpr.ir.value.structure import same
from texpr.isa.registry import INSTRUCTIONS
from texpr.support.diagnostic import CompilerBug, TexprError

BLOCKS = """
fn f(x: i32[64 * n]): i32[n, 8]
    assume x in 0..8
{
    new h: i32[n, 8]
    par n |b| {
        new s: i32[8] = 0
        fully par 64 |t| reduce(s) #atomic(WORDS) { s[x[64 * b + t]] += 1 }
        par 8 |k| { h[b, k] = s[k] }
    }
    return h
}
"""
GRID = """
fn f(x: i32[n], inout h: i32[8])
    assume x in 0..8
{
    par n |i| reduce(h) #atomic(WORDS) { h[x[i]] += 1 }
}
"""
FLOATS = """
fn f(at: i32[n], x: f32[n], inout h: f32[8])
    assume at in 0..8
{
    par n |i| reduce(h) #atomic(WORDS) { h[at[i]] -= 2 * x[i] }
}
"""
PLAIN = "#atomic(WORDS)"

CASES = {
    "of a block": (BLOCKS, "block", "at block", "atomicAdd_block", "ATOMS"),
    "of a block, released": (BLOCKS, "release, block", "at block order release", '"red.release.cta.add.s32"', "STRONG.SM"),
    "of a block, for all": (BLOCKS, "grid", "add= 1:i32", "atomicAdd(", "ATOMS"),
    "for all": (GRID, "relaxed, grid", "add= 1:i32", "atomicAdd(", "RED.E.ADD.STRONG.GPU"),
    "for all, released": (GRID, "release", "order release", '"red.release.gpu.add.s32"', "MEMBAR.ALL.GPU"),
    "floats, released": (FLOATS, "release", "order release", '"red.release.gpu.add.f32"', "STRONG.GPU"),
}
"""A text, the words of its mark, and what is in the plan, in the source and in the machine code."""


@cache
def compiled(name: str) -> Compiled:
    text, words, *_ = CASES[name]
    function = parse(text.replace("WORDS", words))["f"]
    assert not check(function)
    return lower(function, "sm_80", schedule=None)


def numbers(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Arguments, and what is to be in h."""
    x = np.random.default_rng(1).integers(0, 8, 128).astype(np.int32)
    if CASES[name][0] is BLOCKS:
        return {"x": x}, np.array([np.bincount(part, minlength=8) for part in (x[:64], x[64:])])
    if CASES[name][0] is GRID:
        return {"x": x, "h": np.zeros(8, np.int32)}, np.bincount(x, minlength=8)
    y = (np.arange(128) % 5).astype(np.float32)
    return {"at": x, "x": y, "h": np.zeros(8, np.float32)}, -2 * np.bincount(x, y, minlength=8)


@pytest.mark.parametrize("name", CASES)
def test_plan_and_source_have_it(name: str) -> None:
    made, (_, _, plan, source, _) = compiled(name), CASES[name]
    (line,) = [line for line in plan_text(made.plan).splitlines() if "atomic " in line]
    assert line.split("  -- ")[0].endswith(plan) and source in made.source
    assert same(parse_plan(plan_text(made.plan)), made.plan)
    assert not open_of(made, made.plan)


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    made, (arguments, wanted) = compiled(name), numbers(name)
    for seed in (None, 1, 2):
        found = run_plan(made.function, made.plan, arguments, seed=seed)
        assert not found.reports
        np.testing.assert_array_equal(found.arrays["h"], wanted)


@pytest.mark.parametrize("name", CASES)
def test_machine_code(name: str) -> None:
    assert CASES[name][-1] in code_of(built(compiled(name).source, "sm_80"))


BUGS = {
    "of a block, and all blocks update": ("for all", "add= 1:i32", "add= 1:i32 at block", False),
    "no barrier before the updates": ("of a block", re.compile(r"    barrier block covers RAW s from 7 to 8\n"), "", True),
    "no barrier behind them": ("of a block", re.compile(r"    barrier block covers RAW s from 8 to 9\n"), "", True),
    "no step": ("for all", re.compile(r"atomic (h\[.*\]) add= 1:i32"), r"\1 = (\1 + 1:i32)", True),
    "twice": ("for all", "add= 1:i32", "add= 2:i32", True),
    "another update": ("for all", "add= 1:i32", "max= 1:i32", True),
    "of no scope": ("for all", "add= 1:i32", "add= 1:i32 at warp", False),
    "of no order": ("for all", "add= 1:i32", "add= 1:i32 order acquire", False),
}
"""What is planted in the plan of a case; the last says whether the emulator shows it."""


def planted(name: str) -> str:
    case, old, new, _ = BUGS[name]
    text = "\n".join(line.split("  -- ")[0] for line in plan_text(compiled(case).plan).splitlines()) + "\n"
    made = old.sub(new, text) if isinstance(old, re.Pattern) else text.replace(old, new)
    assert made != text
    return made


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert open_of(compiled(BUGS[name][0]), parse_plan(planted(name)))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name in BUGS if BUGS[name][-1]])
def test_the_emulator_shows_it(name: str) -> None:
    made, (arguments, wanted) = compiled(BUGS[name][0]), numbers(BUGS[name][0])
    try:
        runs = [run_plan(made.function, parse_plan(planted(name)), arguments, seed=seed) for seed in (None, 1, 2)]
    except CompilerBug:
        return
    assert any(run.reports or not np.array_equal(run.arrays["h"], wanted) for run in runs)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("warp", "no atomic update is `warp`"),
        ("3", "no atomic update is `3`"),
        ("scope=block", "no atomic update is `block`"),
        ("block, grid", "the scope of these updates is said already"),
        ("release, relaxed", "the order of these updates is said already"),
        ("block", "threads of all blocks have it"),
    ],
)
def test_refused(words: str, told: str) -> None:
    with pytest.raises(TexprError) as caught:
        lower(parse(GRID.replace("WORDS", words))["f"], "sm_80", schedule=None)
    (found,) = caught.value.diagnostics
    assert found.code == "E0335" and told in found.message and found.help is not None


def test_updates_of_a_bound_loop_are_no_sum_of_a_team() -> None:
    """Which element is updated depends on data: without a word, too, each update is one."""
    for words in ("", "(block)"):
        made = lower(parse(BLOCKS.replace("(WORDS)", words).replace("#atomic {", "{"))["f"], "sm_80", schedule=None)
        assert "atomic s[" in plan_text(made.plan) and "s_own" not in plan_text(made.plan)
        assert not open_of(made, made.plan)


def test_the_mark_of_each_update() -> None:
    function = parse(BLOCKS.replace("WORDS", "block"))["f"]
    ((bind, how),) = atomic_binds((), function.body).items()
    assert isinstance(bind, Bind) and (how.scope, how.order) == ("block", "relaxed")


PTX = re.compile(r"(red|atom)\.(relaxed|release|acquire|acq_rel)\.(cta|cluster|gpu)\.(add|min|max)\.(u32|s32|u64|s64|f32|f64)")


def test_records() -> None:
    """PTX ISA 8.5, "red", "atom": each operation of each type that there is, of each order and scope; no sum of `.s64`. Those
    of several elements, and in other blocks, are in tests/isa/test_updates.py."""
    there = {
        "add": {"u32", "s32", "u64", "f32", "f64"},
        "min": {"u32", "s32", "u64", "s64"},
        "max": {"u32", "s32", "u64", "s64"},
    }
    for verb, orders in (("red", 2), ("atom", 4)):
        records = [each for name, each in INSTRUCTIONS.items() if re.match(rf"{verb}_(add|min|max)_[iuf]\d", name)]
        found = [PTX.match(each.asm[0][1]) for each in records]
        assert all(found) and len(records) == 13 * orders * 3
        for record, match in zip(records, found, strict=True):
            assert match is not None and match[1] == verb and match[5] in there[match[4]]
            assert record.name == "_".join((verb, match[4], match[5].replace("s", "i"), match[2], match[3]))
            assert record.asm[0][0] == ("sm_90" if match[3] == "cluster" else "sm_80") and verb in record.source
