"""Sums down columns: parts by threads that read across rows, then their sum; whole columns by the lanes of a core."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import module, results, run_plan
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import integers, laid, wrong

import texpr
from texpr import driver
from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir.kernel import Barrier, kernels, walk
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.mapping.reductions.ways import plain
from texpr.proof.plan.sums import Sums
from texpr.proof.search import proved
from texpr.support.record import as_dict

COLUMNS = """
fn columns(x: f32[m, n]): f32[n] {
    new y: f32[n]
    par n |j| { y[j] = 1.0  par m |i| reduce(y) { y[j] += x[i, j] } }
    return y
}"""

BACKWARD = """
fn backward(g: f32[m, n], x: f32[m, n], mean: f32[m]): (f32[n], f32[n]) {
    new a: f32[n]
    new b: f32[n]
    par n |j| {
        a[j] = 0.0
        b[j] = 0.0
        par m |i| reduce(a, b) { b[j] += g[i, j]  a[j] += g[i, j] * (x[i, j] - mean[i]) }
    }
    return (a, b)
}"""

MOMENTS = """
fn moments(x: f32[m, n]): (f32[n], f32[n]) where m >= 1 {
    new mean: f32[n]
    new most: f32[n]
    par n |j| {
        new s: f32
        s = 0.0
        par m |i| reduce(s) { s += x[i, j] }
        mean[j] = s
        new v: f32
        v = s
        par m |i| reduce(v) { v max= x[i, j] }
        s = s + 1.0
        par m |i| reduce(s) { s min= x[i, j] + v }
        most[j] = s + v
    }
    return (mean, most)
}"""

PLAIN = """
fn plain(x: f32[m, n], inout y: f32[n]) {
    par n |j| { par m |i| reduce(y) { y[j] -= x[i, j] } }
}"""

IMAGES = """
fn images(x: f32[b, m, 3, n]): f32[b, n] {
    new y: f32[b, n]
    par b |e| { par n |j| {
        y[e, j] = -inf
        par m |i| reduce(y) { par 3 |k| reduce(y) { y[e, j] max= x[e, i, k, j] } }
    } }
    return y
}"""

LARGEST = """
fn largest(x: f32[m, n]): (f32[n], i32[n]) {
    new best: f32[n]
    new at: i32[n]
    par n |j| {
        best[j] = -inf
        at[j] = -1
        par m |i| reduce(best, at) { (best[j], at[j]) max= (x[i, j], i) }
    }
    return (best, at)
}"""

PROGRAMS = {"columns": COLUMNS, "backward": BACKWARD, "moments": MOMENTS, "plain": PLAIN, "images": IMAGES, "largest": LARGEST}


def given(text: str, m: int, n: int) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    sizes = {"m": m, "n": n, "b": 2}
    arrays: dict[str, np.ndarray] = {}
    for seed, param in enumerate(laid(text).original.params):
        shape = [int(e.constant) if e.is_constant else sizes[str(e)] for e in param.shape]
        arrays[param.name] = integers(*shape, seed=seed)
    return arrays, {str(size): sizes[str(size)] for size in laid(text).original.sizes}


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_are_right_and_proved(name: str) -> None:
    made = laid(PROGRAMS[name])
    assert len(made.plan.steps) >= 2 and "_parts" in plan_text(made.plan)
    for m, n in ((1, 1), (130, 3), (300, 40), (128, 32), *(() if name == "moments" else ((0, 5), (5, 0)))):
        assert wrong(made, *given(PROGRAMS[name], m, n), (None, 0)) is None, (m, n)
    assert open_of(proved(made.function, made.plan)) == []


MUTANTS = {
    "stored as another": ("y_parts[j_1, i_block] = ", "y_parts[0, i_block] = "),
    "stored behind another": ("y_parts[j_1, i_block] = ", "y_parts[j_1, i_block / 2] = "),
    "taken of another": ("y_parts[j, i_part]", "y_parts[0, i_part]"),
    "one is taken again": ("y_parts[j, i_part]", "y_parts[j, 0]"),
    "rows of the first": ("x[i_1 + 128 * i_block, j_1]", "x[i_1, j_1]"),
    "another column": ("x[i_1 + 128 * i_block, j_1]", "x[i_1 + 128 * i_block, 0]"),
    "a row is left out": ("-128 * i_block + m, 128)", "-128 * i_block + m, 127)"),
    "the first is left out": ("in 0..min(", "in 1..min("),
    "starts at one": ("let y_block_1: f32 = 0:f32", "let y_block_1: f32 = 1:f32"),
    "the rest is not stored": ("(i32(i_block) < i32(((m + 127) / 128)))", "(i32(i_block) < i32((m / 128)))"),
    "the rest is not taken": ("in thread..((m + 127) / 128) by", "in thread..(m / 128) by"),
    "taken by two": ("in thread..((m + 127) / 128) by 256", "in thread..((m + 127) / 128) by 128"),
    "joined otherwise": ("(y_own + y_parts", "(y_own - y_parts"),
    "another element": ("y[j] = (y[j] + y_own_all)", "y[0] = (y[0] + y_own_all)"),
    "the greatest": ("(y_block_1 + x[", "max(y_block_1, x["),
}


def test_wrong_parts_are_refused() -> None:
    made = laid(COLUMNS)
    text = plan_text(made.plan)
    assert open_of(proved(made.function, parse_plan(text))) == []
    for name, (right, other) in MUTANTS.items():
        assert text.count(right) == 1, name
        assert open_of(proved(made.function, parse_plan(text.replace(right, other)))) != [], name


@pytest.mark.planted
def test_of_which_element_a_part_is_has_to_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of each element joined into the one across: nothing else is wrong."""
    made = laid(PLAIN)
    right, other = "y[j] = (y[j] + y_own_all)", "y[n - 1 - j] = (y[n - 1 - j] + y_own_all)"
    text = plan_text(made.plan)
    ours = text.index("kernel plain_y  ")
    known = text[ours:].replace("    size m\n", "    size m, n\n", 1)  # which the other element is told by
    assert known.count(right) == 1 and "size m, n" in known
    plan = parse_plan(text[:ours] + known.replace(right, other))
    assert {o.what for o in open_of(proved(made.function, plan))} == {"no update is lost", "no update of another element"}
    monkeypatch.setattr(Sums, "exactly", lambda *_: iter(()))  # pyright: ignore[reportUnknownLambdaType]
    assert open_of(proved(made.function, plan)) == []


def test_bytes_are_those_of_the_array() -> None:
    """Threads side by side read side by side: each sector once, but for the parts."""
    made, (arrays, sizes) = laid(COLUMNS), given(COLUMNS, 1024, 256)
    emulated = module(made.text)
    emulated.clear_counts()
    assert run_plan(made.function, made.plan, arrays, sizes, count=True).reports == []
    counts = [as_dict(each) for each in emulated.counts().values()]
    moved = 32 * sum(each["global_load_sectors"] + each["global_store_sectors"] for each in counts)
    assert moved <= 1.1 * arrays["x"].nbytes


POOLED = """
fn pooled(x: f32[b, m, n]): f32[b, n] {
    new y: f32[b, n]
    par b |e| { par n |j| {
        new s: f32 = 0.0
        par m |i| reduce(s) { s += x[e, i, j] }
        y[e, j] = s * 0.5
    } }
    return y
}"""


def test_enough_columns_are_threads_and_need_no_parts() -> None:
    made = driver.lower(parse(POOLED).functions[0], "sm_90a", {"b": 64, "m": 49, "n": 2048})
    (kernel,) = kernels(made.plan.steps)
    assert not any(isinstance(s, Barrier) for s in walk(kernel.body))
    few = driver.lower(parse(POOLED).functions[0], "sm_90a", {"b": 1, "m": 4900, "n": 2048})
    assert "_parts" in plan_text(few.plan)


@pytest.mark.parametrize("sizes", [{"b": 2, "m": 49, "n": 5}, {"b": 1, "m": 17, "n": 33}, {"b": 3, "m": 130, "n": 1}])
def test_columns_by_threads_are_right_and_proved(sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "THREADS_ENOUGH", 1)
    function = parse(POOLED).functions[0]
    made = driver.lower(function, "sm_90a", sizes)
    assert open_of(proved(made.function, made.plan)) == []
    x = integers(sizes["b"], sizes["m"], sizes["n"], seed=1)
    ran = run_plan(made.function, made.plan, {"x": x}, {})
    assert ran.reports == []
    assert np.array_equal(results(made.function, ran)["y"], interpret(function, {"x": x}, sizes)["y"])


@pytest.mark.parametrize("text", [COLUMNS, PLAIN])
def test_a_core_takes_columns_of_any_number(text: str) -> None:
    made = texpr.compile(parse(text).functions[0], "cpu")
    for m, n in ((0, 3), (3, 0), (5, 1), (7, 63), (9, 64), (3, 65), (130, 200)):
        arrays, _ = given(text, m, n)
        meant = interpret(parse(text).functions[0], arrays, {"m": m, "n": n})["y"]
        if text is PLAIN:
            found = arrays["y"].copy()
            made(arrays["x"], found)
        else:
            found = made(arrays["x"])
        assert np.array_equal(meant, found), (m, n)


ASKED = """
fn asked(x: f32[m, n]): f32[n] where m >= 1 {
    new y: f32[n]
    par n |j| {
        let q = x[0, j]
        y[j] = q
        par m |i| reduce(y) { y[j] += q * x[i, j] }
    }
    return y
}"""

UNKNOWN = {
    "a row of a triangle": """
fn f(x: f32[m, n], inout y: f32[n]) {
    seq m |t| { par n |j| { y[j] = 0.0  par t |i| reduce(y) { y[j] += x[i, j] } } }
}""",
    "a column of a triangle": """
fn f(x: f32[m, n], inout y: f32[n]) {
    seq n |t| { par t |j| { y[j] = 0.0  par m |i| reduce(y) { y[j] += x[i, j] } } }
}""",
    "what data say": """
fn f(x: f32[m, n], len: i32[1], inout y: f32[n])
    assume len in 0..m + 1
{
    let k = len[0]
    par n |j| { y[j] = 0.0  par k |i| reduce(y) { y[j] += x[i, j] } }
}""",
    "a prefix": """
fn f(x: f32[n], inout y: f32[n]) {
    seq n |t| { par t |i| reduce(y) { y[t] += x[i] } }
}""",
}
"""Sums of as many iterations, or for as many, as nobody knows before: there is no memory for parts."""


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_without_memory_for_parts(name: str, target: str) -> None:
    made = laid(UNKNOWN[name], "", target)
    assert not check(made.original)
    assert open_of(proved(made.function, made.plan)) == []
    assert "_parts" not in plan_text(made.plan)


SHARED = [
    COLUMNS.replace("n]", "200000]").replace("par n", "par 200000"),
    COLUMNS.replace("m, ", "40, ").replace("par m", "par 40"),
    ASKED,
    COLUMNS.replace("x[i, j]", "x[j, i]").replace("x: f32[m, n]", "x: f32[n, m]"),
    COLUMNS.replace("reduce(y) {", "reduce(y) #atomic {"),
]


@pytest.mark.parametrize("text", SHARED, ids=["many columns", "few rows", "by what is read there", "rows", "atomics"])
def test_others_are_one_launch(text: str) -> None:
    assert "_parts" not in plan_text(laid(text).plan)


@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes_of_a_core_are_right_and_proved(name: str) -> None:
    made = laid(PROGRAMS[name], "", "cpu")
    assert "simd" in plan_text(made.plan) and "_parts" not in plan_text(made.plan)
    assert open_of(proved(made.function, made.plan)) == []
