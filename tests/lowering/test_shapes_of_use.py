"""Programs of shapes that users bring, by the schedule that is found and by none: proved, and run like the interpreter."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.lowering import native
from tests.lowering.emulated import results, run_plan
from tests.lowering.test_programs import arguments

from texpr import driver
from texpr.driver import Compiled
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir.proof import Verdict
from texpr.ir.selection import AUTO, Selected
from texpr.support.record import Record, field
from texpr.witness import proved


class Shape(Record, dict=True):
    """A text of one function, sizes that are fixed, and sizes of runs."""

    text: str
    runs: tuple[dict[str, int], ...]
    fixed: dict[str, int] = field(default_factory=dict[str, int])
    below: dict[str, str] = field(default_factory=dict[str, str])


LOCALS = """
fn f(x: f32[b, n, 64]): f32[b, 64] {
    new o: f32[b, 64]
    par b |i| {
        new acc: f32[64]
        par 64 |d| { acc[d] = 0.0 }
        seq n |t| { par 64 |d| { acc[d] += x[i, t, d] } }
        par 64 |d| { o[i, d] = acc[d] }
    }
    return o
}"""

SCORES = """
fn f(x: f32[b, n, 64], q: f32[b, 32]): f32[b, 64] {
    new o: f32[b, 64]
    par b |i| {
        new acc: f32[64]
        par 64 |d| { acc[d] = 0.0 }
        seq n |t| {
            new dot: f32
            dot = 0.0
            par 32 |e| reduce(dot) { dot += q[i, e] * x[i, t, e] }
            par 64 |d| { acc[d] += dot * x[i, t, d] }
        }
        par 64 |d| { o[i, d] = acc[d] }
    }
    return o
}"""

BEGUN_BEFORE = """
fn f(x: f32[B, N, M], z: f32[B, M]): f32[B, M] {
    new y: f32[B, M]
    par B |b| { par M |j| { y[b, j] = z[b, j] } }
    par B |b| { par N |i| reduce(y) { par M |j| { y[b, j] += x[b, i, j] } } }
    return y
}"""

BIASED = """
fn f(x: f32[M, K], W: f32[K, N], bias: f32[N]): f32[M] {
    new y: f32[M]
    par M |i| {
        y[i] = 0.0
        par N |j| reduce(y) {
            new acc: f32
            acc = bias[j]
            par K |k| reduce(acc) { acc += x[i, k] * W[k, j] }
            y[i] += acc
        }
    }
    return y
}"""

HALVES = """
fn f(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |j| {
        y[j] = 0.0
        seq j + 1 |i| reduce(y) { y[j] += x[i / 2] }
    }
    return y
}"""

NORMED = """
fn f(x: f32[M, S]): f32[M, S] {
    new y: f32[M, S]
    par M |i| {
        new sum: f32
        sum = 0.0
        par S |j| reduce(sum) { sum += x[i, j] }
        let k = f32(S) + sum
        par S |s| { y[i, s] = x[i, s] * k }
    }
    return y
}"""

CUBES = """
fn f(x: f32[H, W, D]): f32[H - 2, W - 2, D - 2] where H >= 3, W >= 3, D >= 3 {
    new y: f32[H - 2, W - 2, D - 2]
    par H - 2 |h| { par W - 2 |w| { par D - 2 |d| {
        new top: f32
        top = x[h, w, d]
        par 3 |a| reduce(top) { par 3 |b| reduce(top) { par 3 |c| reduce(top) { top max= x[h + a, w + b, d + c] } } }
        y[h, w, d] = top
    } } }
    return y
}"""

SHAPES = {
    "a local of fixed extent": Shape(LOCALS, ({"b": 3, "n": 0}, {"b": 2, "n": 5})),
    "scores into a local": Shape(SCORES, ({"b": 3, "n": 0}, {"b": 2, "n": 5})),
    "sums of rows begun before": Shape(
        BEGUN_BEFORE, ({"B": 2, "N": 0, "M": 3}, {"B": 5, "N": 7, "M": 19}, {"B": 1, "N": 300, "M": 2})
    ),
    "bias, then a product": Shape(BIASED, ({"M": 3, "K": 0, "N": 34}, {"M": 2, "K": 67, "N": 18}, {"M": 1, "K": 1, "N": 0})),
    "a size that is fixed, in a value": Shape(NORMED, ({"M": 3}, {"M": 0}), {"S": 128}),
    "extrema of cubes": Shape(CUBES, ({"H": 3, "W": 4, "D": 9}, {"H": 5, "W": 3, "D": 4})),
    "a triangle read at halves": Shape(HALVES, ({"n": 0}, {"n": 1}, {"n": 131})),
}
WAYS = [(name, way) for name in SHAPES for way in (AUTO, None)]


@cache
def made(name: str, target: str, way: Selected) -> Compiled:
    shape = SHAPES[name]
    return driver.lower(parse(shape.text).functions[0], target, shape.fixed, schedule=way)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize(("name", "way"), WAYS)
def test_it_is_proved(name: str, way: Selected, target: str) -> None:
    compiled = made(name, target, way)
    proof = proved(compiled.function, compiled.plan)
    assert [each.how for verdict in (Verdict.REFUSED, Verdict.UNDECIDED) for each in proof.of(verdict)] == []


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_it_runs_like_the_interpreter(name: str, way: Selected) -> None:
    shape, on_cpu, on_gpu = SHAPES[name], made(name, "cpu", way), made(name, "sm_90a", way)
    loaded = native.library([on_cpu.plan])
    function = parse(shape.text).functions[0]
    for sizes in shape.runs:
        every = {**shape.fixed, **sizes}
        given = arguments(function, every, shape.below)
        want = interpret(function, given, every)
        got = native.call(loaded, on_cpu.function, on_cpu.plan, given, sizes)
        for buffer, expected in want.items():
            np.testing.assert_array_equal(got[buffer], expected)
        for seed in (None, 0, 1):
            run = run_plan(on_gpu.function, on_gpu.plan, given, sizes, seed, on_gpu.source)
            assert run.reports == []
            for buffer, expected in want.items():
                np.testing.assert_array_equal(results(on_gpu.function, run)[buffer], expected)


def test_a_loop_is_not_parted_by_what_it_reads() -> None:
    text = """
fn f(x: i32[n]): i32[16] {
    new y: i32[16]
    par 16 |b| { y[b] = 0 }
    par n |j| reduce(y) { if x[j] > 3 { y[x[j] % 16] += 1 } }
    return y
}
schedule f for sm_90a { serial(j) partition(j) split(j, 16) -> (jo, ji) }"""
    function = parse(text).functions[0]
    compiled = driver.lower(function, "sm_90a", schedule=function.schedules[0])
    proof = proved(compiled.function, compiled.plan)
    assert not proof.of(Verdict.REFUSED)
    given = {"x": np.random.default_rng(0).integers(0, 40, 37).astype(np.int32)}
    run = run_plan(compiled.function, compiled.plan, given, {"n": 37}, 0, compiled.source)
    assert run.reports == []
    np.testing.assert_array_equal(results(compiled.function, run)["y"], interpret(function, given, {"n": 37})["y"])
