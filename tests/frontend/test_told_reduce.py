"""A `reduce` of a loop whose index tells which element is updated frees nothing, and is left out; any other one is kept."""

from __future__ import annotations

import pytest

from texpr.frontend import parse
from texpr.ir import program as ir

KEPT = {
    "par n, k |i, l| reduce(y) { y[i] += x[i, l] }": ("l",),
    "par k, n |l, i| reduce(y) { y[i] += x[i, l] }": ("l",),
    "par n |i| reduce(y) { y[i] += 1.0 }": (),
    "par n |i| reduce(y) { y[i] += 1.0  y[0] += 1.0 }": ("i",),
    "par n |i| reduce(y) { y[i / 2] += 1.0 }": ("i",),
    "par n, k |i, l| reduce(y, z) { y[i] += x[i, l]  z[l] += x[i, l] }": ("i", "l"),
    "par n |i| reduce(y) { y[at[i]] += 1.0 }": ("i",),
    "par n, k |i, l| reduce(y) #atomic { y[i] += x[i, l] }": ("i", "l"),
    "par n, k |i, l| reduce(y) #ieee { y[i] += x[i, l] }": ("i", "l"),
    "seq n |i| reduce(y) { y[i] += 1.0 }": ("i",),
}
"""Loops, and those whose clause is kept."""


@pytest.mark.parametrize("text", KEPT)
def test_what_is_kept(text: str) -> None:
    head = "fn f(x: f32[n, k], at: i32[n], inout y: f32[n], inout z: f32[k]) assume at in 0..n"
    function = parse(f"{head} {{\n    {text}\n}}").functions[0]
    loops = [stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Par | ir.Seq)]
    assert tuple(loop.sym.name for loop in loops if loop.reduce) == KEPT[text]
    if "z" in text:
        assert [[b.name for b in loop.reduce] for loop in loops] == [["z"], ["y"]]
