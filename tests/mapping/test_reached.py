"""Sums are joined only where some iteration adds to them: elsewhere their element is another's, or none at all."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import texpr
from texpr.interp import run as interpret
from texpr.ir import program as ir
from texpr.isa.target import Reductions
from texpr.mapping.reductions.arrange import arrange

PROGRAMS = {
    "a_triangle_below": "par n + 1 |i| { par i |j| reduce(y) { y[i - 1] += x[i - 1, j] } }",
    "rows_that_are_not": "par 2 * n |i| { par n |j| reduce(y) { if i < n { y[i] += x[i, j] } } }",
    "columns_that_are_not": "par n + 3 |i| { par n |j| reduce(y) { if i + j < n { y[i] += x[i, j] } } }",
    "a_window": "par n + 5 |i| { par n |j| reduce(y) { if i - j < 2 and j < i { y[i - 1] += x[i - 1, j] } } }",
    "every_second": "par 2 * n |i| { par n |j| reduce(y) { if i % 2 == 0 { y[i / 2] += x[i / 2, j] } } }",
    "one_that_another_writes": """par n |i| {
        par n |j| reduce(y) { if 2 * i < n { y[i] += x[i, j] } }
        if 2 * i + 1 < n { y[n - 1 - i] = 7 }
    }""",
    "strides": "par n + 9 |i| { par n |j| reduce(y) { par 2 |k| reduce(y) { if 3 * j + 2 * k + i < n { y[i] += x[i, j] } } } }",
    "not_told": "par n + 3 |i| { par n |j| reduce(y) { if (i + j) % n == n - 1 and i < n { y[i] += x[i, j] } } }",
    "the_first": "par n |j| reduce(y) { y[0] += x[0, j] }",
    "the_first_in_parts": "par 70000 |j| reduce(y) { if j < n { y[0] += x[0, j] } }",
    "sizes": "par 70000 |j| reduce(y) { if n > 3 { y[3] += j } }",
    "two_at_once": "par n + 2 |i| { par n |j| reduce(y, z) { if i < n { y[i] += x[i, j] z[i] += 1 } } }",
    "two_apart": "par n + 1 |i| { par n |j| reduce(y, z) { if i < n { y[i] += x[i, j] } if 0 < i { z[i - 1] += 1 } } }",
}


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_summed_into_where_nothing_is(name: str, target: str) -> None:
    """It was joined in each iteration of the loops around, out of bounds or while another wrote it."""
    text = f"fn f(x: i32[n, n], inout y: i32[n], inout z: i32[n]) {{ {PROGRAMS[name]} }}"
    function = texpr.parse(text)["f"]
    kernel = texpr.compile(function, target=target, emulate=target != "cpu")
    for n in (0, 1, 2, 5, 40):
        x = np.arange(n * n, dtype=np.int32).reshape(n, n)
        y, z = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)
        want: Mapping[str, np.ndarray] = interpret(function, {"x": x, "y": y, "z": z})
        kernel(x, y, z)
        np.testing.assert_array_equal(y, want["y"])
        np.testing.assert_array_equal(z, want["z"])


@pytest.mark.parametrize(
    "body",
    [
        "par n |i| { par n |j| reduce(y) { y[i] += x[i, j] } }",
        "par n |i| { par i |j| reduce(y) { y[i] += x[i, j] } }",
        "par n |i| { new s: i32  s = 0  par i |j| reduce(s) { if j % 3 == i % 2 { s += x[i, j] } }  y[i] = s }",
    ],
)
def test_nothing_is_asked_where_it_does_no_harm(body: str) -> None:
    function = texpr.parse(f"fn f(x: i32[n, n], inout y: i32[n]) {{ {body} }}")["f"]
    before, after = (
        sum(isinstance(s, ir.If) for s in ir.walk(f.body)) for f in (function, arrange(function, Reductions(4096)))
    )
    assert before == after
