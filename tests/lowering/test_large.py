"""Addresses past 2³¹: elements far into a large array, which costs no memory where it is never touched."""

from __future__ import annotations

import numpy as np
import pytest

import texpr

TAIL = """
fn tail(x: i8[r, n]): i32[r, 5]
    where n >= 5
{
    new y: i32[r, 5]
    par r |i| { par 5 |j| { y[i, j] = i32(x[i, n - 1 - j]) } }
    return y
}
"""


@pytest.mark.parametrize("target, emulate", [("cpu", False), ("sm_90a", True)])
def test_elements_past_two_to_the_31(target: str, emulate: bool) -> None:
    rows, length = 2, 2**30 + 7
    x = np.zeros((rows, length), np.int8)
    x[:, -5:] = np.arange(10).reshape(rows, 5)
    kernel = texpr.compile(texpr.parse(TAIL)["tail"], target=target, emulate=emulate)
    np.testing.assert_array_equal(kernel(x), x[:, :-6:-1].astype(np.int32))


def test_more_blocks_than_a_grid_has_in_y() -> None:
    """Over 65535 blocks along y: the launcher cuts the grid into slabs."""
    text = "fn f(x: i8[n, m]): i8[n, m] { new y: i8[n, m]\n par n |i| { par m |j| { y[i, j] = x[i, j] + 1 } }\n return y }"
    x = np.random.default_rng(0).integers(0, 100, (8 * 65536 + 3, 1)).astype(np.int8)
    kernel = texpr.compile(texpr.parse(text)["f"], target="sm_90a", emulate=True)
    np.testing.assert_array_equal(kernel(x), x + 1)
