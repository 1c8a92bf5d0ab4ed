"""The made-up directive in a schedule that is checked, refused with its own form, built, proved and run."""

from __future__ import annotations

import numpy as np

import texpr

SOURCE = """
fn scale(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = 2 * x[i] }
    return y
}

schedule scale for cpu {
    halve(i) -> (h, t)
}
"""

kernel = texpr.compile(texpr.parse(SOURCE)["scale"], target="cpu")
for n in (0, 1, 7, 64):
    x = np.arange(n, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x)

try:
    texpr.compile(texpr.parse(SOURCE.replace("halve(i)", "halve(i, 3)"))["scale"], target="cpu")
except texpr.TexprError as problem:
    assert "halve(LOOP) -> (HALF, INDEX)" in str(problem.diagnostics[0].help), problem
else:
    raise AssertionError("a wrong use passed")
