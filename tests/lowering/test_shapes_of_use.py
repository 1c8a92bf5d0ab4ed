"""Programs of shapes that users bring, by the schedule that is found and by none: proved, and run like the interpreter."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.lowering import native
from tests.lowering.emulated import results, run_plan
from tests.lowering.test_programs import arguments
from tests.proof.plan.verdicts import open_of

from texpr import driver
from texpr.driver import Compiled
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.selection import AUTO, Selected
from texpr.ir.proof import Verdict
from texpr.proof.search import proved
from texpr.support.record import Record, field


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

HALVES_BEHIND = """
fn f(x: f32[m], z: f32[m, n]): f32[m] {
    new y: f32[m]
    par m |j| { y[j] = 0.0 }
    par m |j| { par (j + 2) / 3 |i| reduce(y) { y[j] += x[(i + j) / 2] } }
    par m |j| { seq n |k| { y[j] += z[j, k] } seq n |k| { y[j] += z[j, n - 1 - k] } }
    return y
}"""

HALVES_OF_ALL = """
fn f(x: f32[m], w: f32[n]): f32[m] where m >= n {
    new y: f32[m]
    par m |j| { y[j] = 0.0 }
    par m |j| { par n |i| reduce(y) { y[j] += x[(i + j) / 2] } }
    return y
}"""

FOLDED = """
fn f(x: f32[n, m], v: f32): f32[m] {
    new y: f32[m]
    par m |j| { y[j] = v * 2.0 seq n |i| { y[j] += x[i, j] } }
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

GRADIENT = """
fn f(x: f32[n, C], w: f32[G]): f32[C]
    where C % G == 0, G >= 1
{
    new y: f32[C]
    par C |c| { y[c] = 0.0 }
    par n |i| reduce(y) { par G |g| { par C / G |c| { y[g * (C / G) + c] += x[i, g * (C / G) + c] * w[g] } } }
    return y
}"""

GRADIENT_OF_FIVE = """
fn f(x: f32[n, C], const G: i32 = 5): f32[C]
    where C % G == 0
{
    new y: f32[C]
    par C |c| { y[c] = 0.0 }
    par n |i| reduce(y) { par G |g| { par C / G |c| { y[g * (C / G) + c] += x[i, g * (C / G) + c] } } }
    return y
}"""

GRADIENT_OF_FIVE_ROWS = """
fn f(x: f32[n, 5, q]): f32[5 * q]
{
    new y: f32[5 * q]
    par 5 * q |c| { y[c] = 0.0 }
    par n |i| reduce(y) { par 5 |g| { par q |c| { y[g * q + c] += x[i, g, c] } } }
    return y
}"""

MEANS = """
fn f(x: f32[n, C], w: f32[G]): f32[G]
    where C % G == 0, G >= 1
{
    new m: f32[G]
    par G |g| { m[g] = 0.0 }
    par n |i| reduce(m) { par G |g| { par C / G |c| reduce(m) { m[g] += x[i, g * (C / G) + c] * w[g] } } }
    return m
}"""

GROUPS_OF_A_PRODUCT = """
fn f(A: f32[M, K], B: f32[K, N], w: f32[G]): f32[M, N]
    where N % G == 0, G >= 1
{
    new y: f32[M, N]
    par M |i| {
        new h: f32[N]
        par N |j| {
            h[j] = 0.0
            par K |k| reduce(h) { h[j] += A[i, k] * B[k, j] }
        }
        par G |g| {
            new s: f32
            s = 0.0
            par N / G |c| reduce(s) { s += h[g * (N / G) + c] }
            par N / G |c| { y[i, g * (N / G) + c] = h[g * (N / G) + c] - s * w[g] }
        }
    }
    return y
}"""

FLATTENED = """
fn f(x: f32[B, C, H, W]): f32[B, C * H * W] {
    new y: f32[B, C, H, W]
    par B, C, H, W |b, c, h, w| { y[b, c, h, w] = x[b, c, h, w] * 2.0 }
    let z = reshape(y, (B, C * H * W))
    new o: f32[B, C * H * W]
    par B, C * H * W |b, k| { o[b, k] = z[b, k] + 1.0 }
    return o
}"""

WRITTEN_FLAT = """
fn f(x: f32[B, C, D, H, W]): f32[B, C * D * H * W] {
    new t: f32[B, C, D, H, W]
    let z = reshape(t, (B, C * D * H * W))
    let v = reshape(x, (B, C * D * H * W))
    par B, C * D * H * W |b, k| { z[b, k] = v[b, k] + 1.0 }
    new y: f32[B, C * D * H * W]
    par B, C * D * H * W |b, k| { y[b, k] = z[b, k] * 2.0 }
    return y
}"""

IN_PLANES = """
fn f(x: f32[B, C, D, H, W]): f32[B, C * D, H * W] {
    new t: f32[B, C, D, H, W]
    let z = reshape(t, (B, C * D, H * W))
    let v = reshape(x, (B, C * D, H * W))
    par B, C * D, H * W |b, k, l| { z[b, k, l] = v[b, k, l] + 1.0 }
    new y: f32[B, C * D, H * W]
    par B, C * D, H * W |b, k, l| { y[b, k, l] = z[b, k, l] * 2.0 }
    return y
}"""

TURNS = """
fn f(x: f32[n], w: f32[m]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = x[i] }
    seq n - m * m |t| { par n |i| { y[i] = y[i] * 0.5 + x[i] } }
    return y
}"""

EACH_ROW = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |j| { y[b, j] = 0.0 } }
    par B |b| { par N |i| reduce(y) { par M |j| reduce(y) { y[b, i] += x[b, i, j] } } }
    return y
}"""

TURNED_ROWS = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |j| { y[b, j] = 0.0 } }
    par B |b| { seq N |i| reduce(y) { par M |j| reduce(y) { y[b, N - 1 - i] += x[b, i, j] } } }
    return y
}"""

GREATEST_OF_ROWS = """
fn f(x: f32[B, N, M]): (f32[B, N], i32[B, N]) {
    new y: f32[B, N]
    new z: i32[B, N]
    par B |b| { par N |i| {
        y[b, i] = -inf
        z[b, i] = 0
        par M |j| reduce(y, z) { (y[b, i], z[b, i]) max= (x[b, i, j], j) }
    } }
    return y, z
}"""

SOME_OF_ROWS = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |i| {
        y[b, i] = 0.0
        par i |j| reduce(y) { if j < M { y[b, i] += x[b, i, j] } }
    } }
    return y
}"""

HIDDEN = """
fn f(x: f32[B, K], w: f32[K, 64]): f32[B, 64] {
    new y: f32[B, 64]
    par B |b| {
        new h: f32[64]
        par 64 |j| {
            h[j] = 0.0
            par K |k| reduce(h) { h[j] += x[b, k] * w[k, j] }
        }
        par 64 |c| { y[b, c] = h[63 - c] }
    }
    return y
}"""

PRODUCT_BY_ROWS = """
fn f(A: f32[N, K], B: f32[K, M]): f32[N, M] {
    new C: f32[N, M]
    par N |i| { seq M |j| {
        C[i, j] = 0.0
        seq K |k| { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""

ONE_AFTER_ANOTHER = """
fn f(x: f32[B, N]): f32[B] {
    new y: f32[B]
    par B |b| { y[b] = 0.0 }
    par B |b| {
        seq N |j| { y[b] += x[b, j] }
        seq N |j| { y[b] += x[b, j] * x[b, j] }
        seq N |j| { y[b] max= x[b, j] }
    }
    return y
}"""

FREE_ONE_AFTER_ANOTHER = """
fn f(x: f32[B, N]): f32[B] {
    new y: f32[B]
    par B |b| { y[b] = 0.0 }
    par B |b| reduce(y) {
        seq N |j| reduce(y) { y[b] += x[b, j] }
        seq N |j| { y[b] += x[b, j] * x[b, j] }
    }
    return y
}"""

ADDED_IN_TURN = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |j| { y[b, j] = 0.0 } }
    par B |b| { seq N |i| { seq M |j| { y[b, N - 1 - i] += x[b, i, j] } } }
    return y
}"""

PAIRS_OF_ROWS = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |j| { y[b, j] = 0.0 } }
    par B |b| { par N |i| reduce(y) { par M |j| reduce(y) { y[b, i / 2] += x[b, i, j] } } }
    return y
}"""

DECOMPOSITION = """
fn f(A: f32[N, N]): f32[N, N] {
    new L: f32[N, N]
    par N |i| { par N |j| { L[i, j] = A[i, j] } }
    seq N |k| { par N - k - 1 |i| { seq N - k - 1 |j| {
        L[k + 1 + i, k + 1 + j] -= L[k + 1 + i, k] * L[k, k + 1 + j]
    } } }
    return L
}"""

SUMS_IN_TURN = """
fn f(x: f32[C, B, N]): (f32[C], f32) {
    new y: f32[C]
    new z: f32
    par C |c| {
        y[c] = 0.0
        seq B |i| reduce(y) { par N |j| reduce(y) { y[c] += x[c, i, j] } }
    }
    z = 0.0
    seq B |i| reduce(z) { par N |j| reduce(z) { if j < C { z += x[j, i, j] } } }
    return y, z
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
    "a triangle read at halves from each row on": Shape(
        HALVES_BEHIND, ({"m": 0, "n": 1}, {"m": 1, "n": 0}, {"m": 131, "n": 3}, {"m": 5, "n": 0})
    ),
    "all read at halves from each row on": Shape(HALVES_OF_ALL, ({"m": 1, "n": 0}, {"m": 1, "n": 1}, {"m": 131, "n": 69})),
    "columns summed up from a scalar on": Shape(FOLDED, ({"n": 0, "m": 3}, {"n": 3, "m": 130}, {"n": 2, "m": 0})),
    "no turns, or some": Shape(TURNS, ({"n": 9, "m": 2}, {"n": 5, "m": 70000}, {"n": 0, "m": 1})),
    "flattened": Shape(
        FLATTENED, ({"B": 2, "C": 3, "H": 5, "W": 7}, {"B": 1, "C": 2, "H": 0, "W": 3}, {"B": 0, "C": 1, "H": 1, "W": 1})
    ),
    "written flat": Shape(WRITTEN_FLAT, ({"B": 2, "C": 9, "D": 3, "H": 5, "W": 2}, {"B": 1, "C": 2, "D": 0, "H": 2, "W": 3})),
    "in planes": Shape(IN_PLANES, ({"B": 2, "C": 9, "D": 3, "H": 5, "W": 7}, {"B": 1, "C": 2, "D": 2, "H": 0, "W": 3})),
    "a gradient of groups": Shape(GRADIENT, ({"n": 0, "C": 6, "G": 2}, {"n": 3, "C": 0, "G": 4}, {"n": 5, "C": 119, "G": 7})),
    "a gradient of five groups": Shape(GRADIENT_OF_FIVE, ({"n": 0, "C": 5}, {"n": 3, "C": 0}, {"n": 5, "C": 215})),
    "a gradient of five rows": Shape(GRADIENT_OF_FIVE_ROWS, ({"n": 0, "q": 1}, {"n": 3, "q": 0}, {"n": 5, "q": 43})),
    "a sum for each row, where rows are free": Shape(EACH_ROW, ({"B": 3, "N": 5, "M": 70}, {"B": 2, "N": 3, "M": 0})),
    "the same from the last row on": Shape(TURNED_ROWS, ({"B": 3, "N": 5, "M": 70}, {"B": 2, "N": 3, "M": 0})),
    "the greatest of each row of planes": Shape(GREATEST_OF_ROWS, ({"B": 2, "N": 3, "M": 70}, {"B": 2, "N": 3, "M": 0})),
    "some of each row of planes": Shape(SOME_OF_ROWS, ({"B": 2, "N": 70, "M": 40}, {"B": 2, "N": 3, "M": 0})),
    "a layer that one thread keeps": Shape(HIDDEN, ({},), {"B": 3, "K": 7}),
    "a product, row by row": Shape(PRODUCT_BY_ROWS, ({"N": 67, "M": 3, "K": 5}, {"N": 2, "M": 3, "K": 0})),
    "added in turn": Shape(ADDED_IN_TURN, ({"B": 67, "N": 3, "M": 5}, {"B": 2, "N": 3, "M": 0})),
    "pairs of rows": Shape(PAIRS_OF_ROWS, ({"B": 67, "N": 5, "M": 3}, {"B": 2, "N": 3, "M": 0})),
    "what is left of a matrix": Shape(DECOMPOSITION, ({"N": 0}, {"N": 1}, {"N": 5})),
    "sums in turn, of any order": Shape(SUMS_IN_TURN, ({"C": 3, "B": 4, "N": 70}, {"C": 2, "B": 3, "N": 0})),
    "means of groups": Shape(MEANS, ({"n": 0, "C": 6, "G": 2}, {"n": 3, "C": 0, "G": 4}, {"n": 5, "C": 119, "G": 7})),
    "groups of a product": Shape(
        GROUPS_OF_A_PRODUCT,
        ({"M": 2, "K": 0, "N": 6, "G": 3}, {"M": 3, "K": 4, "N": 0, "G": 1}, {"M": 5, "K": 7, "N": 51, "G": 3}),
    ),
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


@pytest.mark.planted
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_a_sum_is_moved_to_its_own_group(target: str) -> None:
    """Groups end where the promise says, and no element of another is taken for one's own."""
    compiled = made("a gradient of five groups", target, None)
    text = plan_text(compiled.plan)
    assert not open_of(proved(compiled.function, parse_plan(text)))
    rows = "g_point * (C / 5)" if target == "cpu" else "g * (C / 5)"
    moved = [line for line in text.splitlines() if rows in line and ("] = y_own" in line or "= y[" in line)]
    assert moved
    for line in moved:
        for wrong in ("0", rows.replace("(C / 5)", "((C + 5) / 5)"), rows.replace("(C / 5)", "5")):
            other = text.replace(line, line.replace(rows, wrong))
            assert open_of(proved(compiled.function, parse_plan(other))), wrong


@pytest.mark.planted
@pytest.mark.parametrize(("right", "wrong"), [("k_0 / W", "k_0 / H"), ("% D", "% H"), ("k_0 % W", "0"), ("k_1 + k_0", "k_1")])
def test_an_element_in_another_shape_is_its_own(right: str, wrong: str) -> None:
    compiled = made("written flat", "sm_90a", None)
    text = plan_text(compiled.plan)
    lines = [line for line in text.splitlines() if right in line]
    assert lines
    for line in lines:
        other = text.replace(line, line.replace(right, wrong, 1))
        assert open_of(proved(compiled.function, parse_plan(other)))


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


@pytest.mark.planted
@pytest.mark.parametrize("name", ["a sum for each row, where rows are free", "the same from the last row on"])
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_a_sum_is_of_its_own_row(name: str, target: str) -> None:
    """Rows whose order is free are apart: what is added to a row is the sum of that row."""
    text = plan_text((compiled := made(name, target, None)).plan)
    own = "b'1, i" if name.endswith("free") else "b'1, N - i - 1"
    (final,) = (line for line in text.splitlines() if f"y[{own}] = (y[{own}]" in line)
    reads = [line for line in text.splitlines() if "x[b'1, i, " in line]
    assert reads
    for line, right, wrong in (
        (final, own, "b'1, 0"),
        *((line, "x[b'1, i,", f"x[b'1, {at},") for line in reads for at in "0N"),
    ):
        other = text.replace(line, line.replace(right, wrong))
        assert open_of(proved(compiled.function, parse_plan(other))), wrong


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("program", [ONE_AFTER_ANOTHER, FREE_ONE_AFTER_ANOTHER], ids=["in turn", "of any order"])
def test_sums_one_after_another_into_what_another_loop_began(program: str, target: str) -> None:
    """By automatic plans; without one, a copy of what the first sum kept is undecided on a GPU where there are no turns."""
    compiled = driver.lower(parse(program).functions[0], target, schedule=AUTO)
    proof = proved(compiled.function, compiled.plan)
    assert not [each for verdict in (Verdict.REFUSED, Verdict.UNDECIDED) for each in proof.of(verdict)]
