"""What cannot be lowered yet is told as that, with what in the program asks for it."""

from __future__ import annotations

import pytest

from texpr.checks import check
from texpr.frontend import parse
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.support.diagnostic import Limitation

INSTRUCTION = """
instr triple(a: f32[4], inout c: f32[4]) {
    meaning { seq 4 |i| { c[i] = a[i] * 3.0 } }
}
fn f(A: f32[n, 4], inout C: f32[n, 4]) {
    par n |i| { triple(A[i, 0 : +4], C[i, 0 : +4]) }
}
"""

OWN_SIZE = """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| {
        new v: i32[i + 1]
        seq i + 1 |j| { v[j] = x[j] }
        y[i] = v[0] + v[i]
    }
    return y
}"""

HOST_LOOP = """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| { y[i] = 0 }
    seq n |t| {
        new v: i32[t + 1]
        par n |i| { if i <= t { v[i] = x[i] } }
        par n |i| { if i <= t { y[i] += v[t - i] } }
    }
    return y
}"""

DATA = """
fn f(x: i32[n], len: i32[n]): i32[n]
    where n >= 1
    assume len in 0..n + 1
{
    new y: i32[n]
    par n |i| { y[i] = 0 }
    let l = len[0]
    new v: i32[max(l, 0)]
    par l |i| { v[i] = x[i] }
    par l |i| { y[i] = v[l - 1 - i] }
    return y
}"""

SHARED = """
fn f(x: i32[n, m], len: i32[n]): i32[n]
    assume len in 0..m + 1
{
    new y: i32[n]
    par n |i| {
        let l = len[i]
        new v: i32[max(l, 0)]
        new s: i32
        s = 0
        par l |j| { v[j] = x[i, j] }
        par l |j| reduce(s) { s += v[l - 1 - j] * j }
        y[i] = s
    }
    return y
}"""

CASES = {
    "instruction": (
        INSTRUCTION,
        "E0541",
        "`triple` has no fragments, so nothing says which lane holds what, and that is not lowered yet",
        6,
    ),
    "own index": (OWN_SIZE, "E0542", "the size of `v` depends on `i`, so no memory can be set aside", 5),
    "host loop": (HOST_LOOP, "E0542", "the size of `v` depends on `t`, so no memory can be set aside", 6),
    "data": (DATA, "E0542", "the size of `v` depends on `l`, so no memory can be set aside", 9),
    "data in a team": (SHARED, "E0542", "the size of `v` depends on `l`, so no memory can be set aside", 8),
}


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("case", CASES)
def test_limitations(case: str, target: str) -> None:
    text, code, message, line = CASES[case]
    function = parse(text, "limit.te").functions[0]
    assert not check(function), check(function)[0]
    with pytest.raises(Limitation) as caught:
        lower(function, resolve(target))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.span.line) == (code, message, line)
