"""Iterations of a reduction that meet in elements which both loops say are not run by the threads of the other loop."""

from __future__ import annotations

import numpy as np
import pytest

import texpr
from texpr.interp import run as interpret

PROGRAMS = {
    "few": "par 4 |k| reduce(y) { par n |i| { y[i + k] += x[i, k] } }",
    "few_of_numbers": "par 4 |k| reduce(y) { par 300 |i| { if i < n { y[i + k] += x[i, k] } } }",
    "no_atomics": "par 4 |k| reduce(y) { par n |i| { y[i + k] max= x[i, k] } }",
    "inside": "par 2 |b| { par 4 |k| reduce(z) { par n |i| { z[b, i + k] max= x[i, k] } } }",
    "in_turns": "par 4 |k| reduce(y) { par n |i| { y[(i + k) % (n + 4)] max= x[i, k] } }",
}


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_whose_iterations_meet_across_the_reduction(name: str, target: str) -> None:
    """Threads of the inner loop ran the outer one in order, each by itself: they met in `y[i + k]`."""
    text = f"fn f(x: f32[n, 4], inout y: f32[n + 4], inout z: f32[2, n + 4]) {{ {PROGRAMS[name]} }}"
    function = texpr.parse(text)["f"]
    kernel = texpr.compile(function, target=target, emulate=target != "cpu")
    for n in (0, 1, 5, 300):
        x = np.random.default_rng(n).integers(-4, 9, (n, 4)).astype(np.float32)
        y, z = np.zeros(n + 4, np.float32), np.zeros((2, n + 4), np.float32)
        want = interpret(function, {"x": x, "y": y, "z": z})
        kernel(x, y, z)
        np.testing.assert_array_equal(y, want["y"])
        np.testing.assert_array_equal(z, want["z"])
