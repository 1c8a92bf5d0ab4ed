"""Programs of which something was open once, each for a reason of its own; and bugs beside what was learnt by them."""

from __future__ import annotations

from functools import cache

import pytest
from tests.lowering.test_cluster import ROWS
from tests.proof.plan.verdicts import is_proved, open_of

from texpr import driver
from texpr.driver import Compiled
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.proof.plan import Verdict
from texpr.proof.search import proved

CHAIN = """
fn f(x: f32[n, m], b: f32[m]): f32[n, m] {
    new u: f32[n, m]
    new v: f32[n, m]
    new w: f32[n, m]
    new y: f32[n, m]
    par n |i| { par m |j| { u[i, j] = x[i, j] + b[j] } }
    par n |i| { par m |j| { v[i, j] = u[i, j] * 2.0 } }
    par n |i| { par m |j| { w[i, j] = v[i, j] - 1.0 } }
    par n |i| { par m |j| { y[i, j] = w[i, j] + u[i, j] } }
    return y
}"""
"""Of which elements registers are that stand for arrays, says what they are made of."""

NAMES = """
fn f(x: f32[n]): f32[n] {
    new a: f32[n]
    new c: f32[n]
    new y: f32[n]
    par n |i| { let t = x[i] * 2.0  a[i] = t + t }
    par n |i| { let t = a[i]  c[i] = t * t }
    par n |i| { let t = c[i] + a[i]  y[i] = t }
    return y
}"""
"""A name for an element is that element, wherever a vector brings it."""

BY_DATA = """
fn f(x: i32[n], c: i32[k]): i32[n]
    where k >= 2
{
    new y: i32[n]
    par n |i| { y[i] = x[i] }
    if c[0] > c[1] { par n |i| { y[i] += 1 } } else { par n |i| { y[i] -= 2 } }
    return y
}"""
"""What the test gave is kept from one launch to the next."""

ARMS = """
fn f(x: i32[n, m], c: i32[n]): i32[n, m] {
    new y: i32[n, m]
    par n |i| {
        new v: i32[40]
        par 40 |j| { v[j] = j }
        if c[i] > 0 { par 40 |j| { v[39 - j] = j * 2 } } else { par m |j| { y[i, j] = v[(j + 3) % 40] } }
        par m |j| { y[i, j] = v[j * 7 % 40] }
    }
    return y
}"""
"""Of the two arms of a branch one runs: nothing need order them."""

OUTSIDE = """
fn f(A: i32[k, n], B: i32[k, m]): i32[n, m] {
    new C: i32[n, m]
    par n |i| { par m |j| { C[i, j] = 0 } }
    par k |t| reduce(C) { par n |i| { par m |j| { C[i, j] += A[t, i] * B[t, j] } } }
    return C
}"""
"""A register takes an element over for a loop that has those of its indices inside."""

RAGGED = """
fn f(x: i32[n, m], len: i32[n]): i32[n]
    assume len in 0 - 40..m + 1
{
    new y: i32[n]
    par n |i| {
        new s: i32 = 1
        let l = len[i]
        par l |j| reduce(s) { s += x[i, j] }
        seq l |j| { s = s * 3 % 1001 + x[i, j] }
        y[i] = s
    }
    return y
}"""
"""A loop as long as data say, and perhaps less than nothing."""

STRIDES = """
fn f(x: i32[m, n] stride(ld, 1)): i32[n] {
    new s: i32[n]
    par n |j| {
        s[j] = 0
        seq m |i| { s[j] += x[i, j] }
    }
    return s
}"""
"""Which elements are begun with 0 in an array of a kernel, only what is stored there later says."""

APART = """
fn f(x: f32[n], a: f32): f32[n] {
    new y: f32[n]
    par n |i| {
        new s: f32
        s = a * x[i]
        y[i] = s + s
    }
    return y
}

schedule f for cuda { distribute(i) -> (first, second) }"""
"""A register is an element of an array of the program that no memory has."""

BY_SIZE = """
fn f(a: i32[M, N]): i32[M * N]
    where M >= 1, N >= 1, M % 32 == 0, N % 32 == 0
{
    new y: i32[M * N]
    par M * N |x| { y[x] = a[x % M, x / M] }
    return y
}"""
"""Digits of an index to the base of a size."""

UNEVEN = """
fn f(a: i32[W, 300]): i32[W, 300] {
    new y: i32[W, 300]
    par W |w| { par 300 |c| { y[w, c] = a[w, c % 20 * 15 + c / 20] } }
    return y
}"""
"""Digits of an index of which one is cut short: 16 and 4 of 20."""

INDEX = """
fn f(y: i32[n]): i32[n] {
    new q: i32[n]
    new s: i32
    par n |i| { q[i] = y[i] }
    s = 0
    par 4 |a| reduce(s) { par (n + 3) / 4 |b| reduce(s) { if a * ((n + 3) / 4) + b < n { s max= i32(a * ((n + 3) / 4) + b) } } }
    par n |i| { q[i] += s }
    return q
}"""
"""A loop that blocks share out, of which only a number says where it ends, and a size multiplies its index."""

STAGED = """
fn f(a: i32, x: i32[n]): i32[n] {
    new y: i32[n]
    new s: i32
    s = a * 2
    par n |i| { y[i] = x[i] * a - s }
    return y
}

schedule f for cuda { split(i, 8) -> (b, t)  bind(b, grid.y)  bind(t, block.x)  stage(s, at=b, in=registers) -> sr }"""
"""A register is the program's, and has the value of memory that is called as it is."""

CLUSTER = f"""{ROWS}

schedule rows for cuda {{ bind(i, grid.x)  cluster(i, 8)  stage(w, at=i, in=shared, via=tma, multicast=i) -> ws }}"""
"""A block that only fills a cluster sums up nothing, and its lanes exchange that."""

SCHEDULED = {"staged": STAGED, "cluster": CLUSTER}

PROGRAMS = {
    "index": INDEX,
    "strides": STRIDES,
    "apart": APART,
    "by size": BY_SIZE,
    "uneven": UNEVEN,
    "by data": BY_DATA,
    "arms": ARMS,
    "outside": OUTSIDE,
    "ragged": RAGGED,
    "chain": CHAIN,
    "names": NAMES,
}


@cache
def compiled(text: str, target: str) -> Compiled:
    """The only function of `text`, as its only schedule says, if it has one."""
    (function,) = driver.parse(text).functions
    return driver.lower(function, target, schedule=next(iter(function.schedules), None))


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_once_open(name: str, target: str) -> None:
    made = compiled(PROGRAMS[name], target)
    assert open_of(proved(made.function, made.plan)) == []


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", ["chain", "names"])
def test_once_open_in_vectors(name: str, target: str) -> None:
    made = driver.lower(driver.parse(PROGRAMS[name])["f"], target, schedule="auto")
    assert open_of(proved(made.function, made.plan)) == []


@pytest.mark.parametrize("name", SCHEDULED)
def test_once_open_as_scheduled(name: str) -> None:
    made = compiled(SCHEDULED[name], "sm_90a")
    assert open_of(proved(made.function, made.plan)) == []


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_registers_are_called_after_the_longest_name(target: str) -> None:
    """`y_acc_own` keeps an element of `y_acc`, and none of `y`."""
    text = """
fn f(A: f32[M, K], x: f32[K]): f32[M] {
    new y: f32[M]
    par M |i| { y[i] = 0.0  seq K |k| reduce(y) { y[i] += A[i, k] * x[k] } }
    return y
}"""
    made = driver.lower(driver.parse(text)["f"], target, schedule="auto")
    assert open_of(proved(made.function, made.plan)) == []


WRONG = {
    "a sum without its warps": (CLUSTER, "        s_own_all = s_own_warps[0]", "        s_own_all = s_own_warps[1]"),
    "a block that sums nothing": (INDEX, "min(-a_block + 4, 1)", "min(-a_block + 3, 1)"),
    "a register of something else": (STAGED, "let sr: i32 = s[]", "let sr: i32 = a[]"),
    "a digit of another size": (BY_SIZE, "y[M * x_1 + x_0]", "y[N * x_1 + x_0]"),
    "a column too far": (BY_SIZE, "y[M * x_1 + x_0]", "y[M * x_1 + x_0 + 1]"),
    "an element of another thread": (APART, "y[first] = (s + s)", "y[n - 1 - first] = (s + s)"),
    "another test": (BY_DATA, "= (c[0] > c[1])", "= (c[0] < c[1])"),
    "a test that is not turned": (BY_DATA, "if not(decided[])", "if decided[]"),
    "a test that is never asked": (BY_DATA, "    launch f_decided\n", ""),
    "a test that is asked too late": (
        BY_DATA,
        "    launch f_decided\n    launch f_y_1\n",
        "    launch f_y_1\n    launch f_decided\n",
    ),
    "a link of a chain left out": (CHAIN, "(w + u)", "(v + u)"),
    "a link of another element": (CHAIN, "x[i, j] + b[j]", "x[i, j] + b[0]"),
    "a name for something else": (NAMES, "(t'1 * t'1)", "(t'1 * x[i])"),
    "a wrong arm": (ARMS, "else {", "else { v[0] = 7:i32"),
    "a sum that goes back too early": (OUTSIDE, "        C[i, j] = c ", "        C[j, i] = c "),
}


@pytest.mark.parametrize("name", WRONG)
def test_planted(name: str) -> None:
    text, old, new = WRONG[name]
    made = compiled(text, "sm_90a")
    planted = plan_text(made.plan).replace(" dependent\n", "\n").replace(old, new)
    assert planted != plan_text(made.plan).replace(" dependent\n", "\n")
    assert not is_proved(proved(made.function, parse_plan(planted)))


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_what_is_undecided_yet_is_not_refused(target: str) -> None:
    """A value that is kept beside a test of data: no trial takes what is unread for a difference."""
    text = """
fn f(x: i32[n, 70], c: i32[k]): i32[n, 70]
    where k >= 2
{
    new y: i32[n, 70]
    if c[0] > c[1] { par n |i| { par 70 |j| { y[i, j] = x[i, 69 - j] } } } else {
        par n |i| {
            new s: i32 = 0
            let q = x[i, 3]
            par 70 |j| reduce(s) { s += x[i, j] }
            par 70 |j| { y[i, j] = s + q }
        }
    }
    return y
}"""
    made = compiled(text, target)
    assert proved(made.function, made.plan).of(Verdict.REFUSED) == ()
