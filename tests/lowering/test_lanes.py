"""Reductions that one core runs in vector lanes: every split of a loop into streams, groups and what they leave."""

from __future__ import annotations

import numpy as np
import pytest

import texpr
from texpr.lowering.lanes import GROUPS, LINE, STREAMS
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
STRETCH = STREAMS * GROUPS * LINE // 4
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
