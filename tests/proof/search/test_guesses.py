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


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("text", [ROWS, PARTED], ids=["a register of each column", "two arms"])
def test_what_is_right_is_proved(text: str, target: str) -> None:
    (function,) = driver.parse(text).functions
    schedule = function.schedules[0] if target != "cpu" or text is ROWS else None
    made = driver.lower(function, target, schedule=schedule)
    assert open_of(proved(made.function, made.plan)) == []
