"""The language, from text to result: every program of the gallery traced, and the features that the gallery lacks."""

from __future__ import annotations

import numpy as np
import pytest

from references import EXAMPLES, Example
from texpr.frontend import parse
from texpr.interp import conflicts, run
from texpr.interp.dtypes import Array
from texpr.support.diagnostic import TexprError

rng = np.random.default_rng(5)


def small(*shape: int) -> Array:
    return rng.integers(-4, 5, shape).astype(np.float32)


def work(sizes: dict[str, int]) -> int:
    return int(np.prod([max(size, 1) for size in sizes.values()]))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_trace_of_the_gallery_finds_nothing(example: Example):
    for sizes in sorted(example.small, key=work)[:2]:
        consts, rest = example.split(sizes)
        function = parse(example.path.read_text(encoding="utf-8"), example.path.name, consts)[example.function]
        arrays = example.make(np.random.default_rng(1), sizes)
        fast, slow = run(function, arrays, rest), run(function, arrays, rest, checked=True)
        for name, want in slow.items():
            np.testing.assert_array_equal(fast[name], want)


def both(text: str, arguments: dict[str, Array | float], sizes: dict[str, int] | None = None) -> dict[str, Array]:
    """The last function's results, once more by the traced run."""
    function = parse(text).functions[-1]
    fast, slow = run(function, arguments, sizes), run(function, arguments, sizes, checked=True)
    for name, want in slow.items():
        np.testing.assert_array_equal(fast[name], want)
    return fast


def test_views_and_padding():
    text = """
    fn blur(x: f32[n]): f32[n] {
        new y: f32[n]
        let wide = pad(x, 1, 1, 0.0)
        par n |i| { y[i] = wide[i] + wide[i + 1] + wide[i + 2] }
        return y
    }"""
    x = small(9)
    wide = np.pad(x, 1)
    np.testing.assert_array_equal(both(text, {"x": x})["y"], wide[:-2] + wide[1:-1] + wide[2:])


def test_calls_give_several_results():
    text = """
    fn extremes(x: f32[n]): (f32, f32) {
        new low: f32
        new high: f32
        low = inf
        high = -inf
        par n |i| reduce(low, high) { low min= x[i]  high max= x[i] }
        return (low, high)
    }
    fn scaled(x: f32[n]): f32[n] {
        new y: f32[n]
        let (low, high) = extremes(x)
        par n |i| { y[i] = (x[i] - low) / (high - low) }
        return y
    }"""
    x = np.array([3, 1, 5, 2], np.float32)
    np.testing.assert_array_equal(both(text, {"x": x})["y"], (x - 1) / 4)


def test_a_user_s_combiner():
    text = """
    combine far(a: f32, b: f32): f32 identity 0.0 { return select(abs(b) > abs(a), b, a) }
    fn farthest(x: f32[n]): f32 {
        new s: f32
        s = 0.0
        par n |i| reduce(s) { s far= x[i] }
        return s
    }"""
    assert both(text, {"x": np.array([3, -7, 5, 6], np.float32)})["s"] == -7


def test_a_matrix_instruction():
    text = """
    instr mma(a: f16[2, 4], b: f16[4, 2], inout c: f32[2, 2]) {
        meaning { par 2 |p| { par 2 |q| { seq 4 |r| { c[p, q] += f32(a[p, r]) * f32(b[r, q]) } } } }
    }
    fn tiles(A: f16[m * 2, 4], B: f16[4, n * 2]): f32[m * 2, n * 2] {
        new C: f32[m * 2, n * 2]
        par m * 2 |i| { par n * 2 |j| { C[i, j] = 0.0 } }
        par m |i| { par n |j| { mma(A[i*2 : +2, :], B[:, j*2 : +2], C[i*2 : +2, j*2 : +2]) } }
        return C
    }"""
    a, b = small(6, 4).astype(np.float16), small(4, 10).astype(np.float16)
    c = both(text, {"A": a, "B": b})["C"]
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_ragged_rows():
    text = """
    fn rows(start: i32[n], count: i32[n], x: f32[m]): f32[n]
        assume start in 0..m, count in 0..m
    {
        new y: f32[n]
        par n |i| {
            let many = count[i]
            let from = start[i]
            y[i] = 0.0
            seq many |j| { y[i] += x[(from + j) % m] }
        }
        return y
    }"""
    x, start, count = small(7), np.array([0, 3, 6], np.int32), np.array([2, 0, 5], np.int32)
    want = [sum(x[(s + j) % 7] for j in range(c)) for s, c in zip(start, count, strict=True)]
    np.testing.assert_array_equal(both(text, {"x": x, "start": start, "count": count})["y"], want)
    with pytest.raises(TexprError, match=r"E0711.*start\[1\] = 7"):
        run(parse(text)["rows"], {"x": x, "start": np.array([0, 7, 6], np.int32), "count": count})


def test_what_a_trace_says_of_an_illegal_text():
    text = "fn shift(inout x: f32[n]) {\n    par n - 1 |i| { x[i + 1] = x[i] }\n}\n"
    function = parse(text, "shift.te")["shift"]
    (found,) = conflicts(function, {"x": small(4)})
    assert found.message == "iterations of `par i` depend on each other: i = 0 and i = 1 meet in x[1]"
    assert str(found.span) == "shift.te:2:32" and str(found.other_span) == "shift.te:2:21"
    assert not conflicts(function, {"x": small(2)})
