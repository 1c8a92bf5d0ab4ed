"""Reductions that one core runs in vector lanes: every split of a loop into streams, groups and what they leave."""

from __future__ import annotations

import numpy as np
import pytest

import texpr
from texpr.isa.registry import resolve
from texpr.lowering.emit.lanes import GROUPS, STREAMS
from texpr.runtime.kernel import Kernel

TEXT = """
fn total(x: i32[n], y: f64[n], z: u8[n]): (i32, f64, u8) {
    new s: i32
    new t: f64
    new u: u8
    s = 0
    t = 1.0
    u = 0
    par n |i| reduce(s) { s += x[i] * 3 }
    par n |i| reduce(t) { t max= y[i] }
    par n |i| reduce(u) { u -= z[i] }
    return (s, t, u)
}
"""
STRETCH = STREAMS * GROUPS * resolve("cpu").global_memory.line // 4
SIZES = (0, 1, 15, 16, 17, 31, 33, STRETCH - 1, STRETCH, STRETCH + 1, 2 * STRETCH + 37, 65536 + STRETCH + 16, 5 * STRETCH - 1)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return texpr.compile(texpr.parse(TEXT)["total"])


@pytest.mark.parametrize("n", SIZES)
def test_streams_and_what_they_leave(kernel: Kernel, n: int) -> None:
    numbers = np.random.default_rng(n)
    x = numbers.integers(-1000, 1000, n).astype(np.int32)
    y = numbers.integers(-1000, 1000, n).astype(np.float64)
    z = numbers.integers(0, 256, n).astype(np.uint8)
    s, t, u = kernel(x, y, z)
    assert int(s) == 3 * int(x.sum()) and int(u) == -int(z.sum(dtype=np.int64)) % 256
    assert float(t) == max([1.0, *y.tolist()])


def test_a_loop_of_less_than_nothing_has_no_turn() -> None:
    """Parts of a loop begin where its extent was rounded down, which is before 0 where that is negative."""
    text = """fn f(x: i32[n, m], len: i32[n]): (i32[n], i32[n]) assume len in 0 - 40..m + 1 {
        new y: i32[n]
        new z: i32[n]
        par n |i| {
            new s: i32 = 1
            new t: i32 = 2
            let l = len[i]
            par l |j| reduce(s) { s += x[i, j] }
            par m - 50 |j| reduce(t) { t += x[i, j] }
            y[i] = s
            z[i] = t
        }
        return (y, z)
    }"""
    kernel = texpr.compile(texpr.parse(text)["f"])
    for m in (0, 20, 49, 50, 51, 99):
        lengths = np.array([-40, -33, -32, -16, -1, 0, m // 2, m], np.int32)
        x = np.random.default_rng(m).integers(-1000, 1000, (len(lengths), m)).astype(np.int32)
        y, z = kernel(x, lengths)
        np.testing.assert_array_equal(y, [1 + x[i, : max(0, n)].sum() for i, n in enumerate(lengths)])
        np.testing.assert_array_equal(z, 2 + x[:, : max(0, m - 50)].sum(1))
