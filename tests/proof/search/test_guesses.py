"""Right plans whose events look like those of another statement: a search that guesses wrong has them refused."""

from __future__ import annotations

import pytest
from tests.proof.plan.verdicts import open_of

from texpr import driver
from texpr.proof.search import proved

ROWS = """
fn rows(x: i32[7, 5], w: i32[5]): i32[7, 5] {
    new y: i32[7, 5]
    par 5 |i| {
        par 7 |j| {
            new v: i32
            v = max(x[j, i / 2], w[i])
            par 5 |e| reduce(v) { v += select(2 * e < 5, x[j, 2 * e], 0) }
            y[j, i] = v
        }
    }
    return y
}
schedule rows { distribute(j)  distribute(i) }
"""

PARTED = """
fn planes(x: i32[1, 4, 4]): i32[4, 4] {
    new y: i32[4, 4]
    par 4 |i| { par 4 |j| {
        new s: i32
        s = 0
        seq 1 |q| reduce(s) { s += x[q, i, j] }
        y[i, j] = s
    } }
    return y
}
schedule planes {
    split(i, 3) -> (b, t)  split(j, 16) -> (c, u)  split(q, 3) -> (o, p)
    reorder(b, c, o, t, u, p)
    bind(t, block.y)  bind(u, block.z)
    partition(u_2)
}
"""

LATER = """
fn later(x: i32[5]): i32[5] {
    new r: i32[5]
    par 5 |i| { r[i] = x[i] }
    seq 2 |t| {
        par 5 |i| { if 2 * i < 7 { r[i] += t } }
        par 5 |j| {
            new v: i32
            v = t
            if j % 2 == 0 { v = x[j] }
            r[j] = v - r[j]
        }
    }
    return r
}
"""
"""Nothing in `v = t` says which `j` it is for, and the kernel has no loop of that name."""

TURNED = """
fn turned(x: i32[n, m]): i32[n] {
    new q: i32[n]
    new s: i32
    s = 0
    par n |i| reduce(s) { par m |j| reduce(s) { s min= x[i, j] } }
    par n |k| { q[k] = s }
    return q
}
schedule turned { swizzle(i, j, shift) -> (row, column) }
"""
"""Only a remainder names the column, which several vectors have a part of each."""


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize(
    "text", [ROWS, PARTED, LATER, TURNED], ids=["a register of each column", "two arms", "named later", "rows turned"]
)
def test_what_is_right_is_proved(text: str, target: str) -> None:
    (function,) = driver.parse(text).functions
    schedule = next(iter(function.schedules), None) if target != "cpu" or text is not PARTED else None
    made = driver.lower(function, target, schedule=schedule)
    assert open_of(proved(made.function, made.plan)) == []
