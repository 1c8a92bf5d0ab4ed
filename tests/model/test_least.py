"""What a function needs, counted by hand and by the interpreter's events."""

from __future__ import annotations

import pytest

from texpr.affine.expr import Sym
from texpr.frontend import parse
from texpr.model.least import needs

TEXTS = {
    "saxpy": "fn f(a: f32, x: f32[n], y: f32[n]): f32[n] { new z: f32[n] par n |i| { z[i] = a * x[i] + y[i] } return z }",
    "product": """fn f(A: f16[n, n], B: f16[n, n]): f32[n, n] { new C: f32[n, n]
        par n |i| { par n |j| { C[i, j] = 0.0 seq n |k| reduce(C) { C[i, j] += f32(A[i, k]) * f32(B[k, j]) } } } return C }""",
    "update": "fn f(inout y: f64[n], x: f64[n]) { par n |i| { y[i] = max(y[i], x[i] / sqrt(x[i])) } }",
    "whole": "fn f(x: i32[n]): i32[n] { new y: i32[n] par n |i| { y[i] = 3 * x[i] + 1 } return y }",
    "rounded": "fn f(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = fma(floor(x[i]), x[i], x[i]) } return y }",
    "first": "fn f(x: f32[n]): f32[n] where n >= 1 { new y: f32[n] par n |i| { y[i] = x[0] + x[0] } return y }",
    "triangle": """fn f(x: f32[n]): f32[n] { new y: f32[n] par n |i| { new s: f32 = 0.0
        seq i |j| { s += x[j] } y[i] = s } return y }""",
}
N = 64.0
COUNTED = {
    "saxpy": (12 * N, 2 * N),
    "product": (2 * 2 * N * N + 4 * N * N, 2 * N**3),
    "update": (3 * 8 * N, 2 * N),
    "whole": (8 * N, 0),
    "rounded": (8 * N, 2 * N),
    "first": (8 * N, N),
}


@pytest.mark.parametrize("name", COUNTED)
def test_bytes_and_operations(name: str) -> None:
    found = needs(parse(TEXTS[name]).functions[0], {Sym("n"): int(N)})
    assert (found.moved, found.flops) == COUNTED[name]


def test_what_changes_is_counted_nearly() -> None:
    """Half of a square, counted at points."""
    found = needs(parse(TEXTS["triangle"]).functions[0], {Sym("n"): 1024})
    assert found.flops == pytest.approx(1024 * 1023 / 2, rel=0.03)
