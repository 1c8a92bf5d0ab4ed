"""Axes of a grid that stand for several loops: a product of two extents below 0 is above 0, and of no turn all the same."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.proof.plan.verdicts import is_proved

from texpr import driver
from texpr.affine.expr import expr
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.proof.tags import Statement
from texpr.proof.plan import prove, question
from texpr.proof.search import proved, search
from texpr.support.record import replace

FOUR = """
fn f(x: i32[n, m, 3, p, 40]): i32[n, m, 3, p, 40]WHERE {
    new y: i32[n, m, 3, p, 40]
    par n |a| { par m |b| { par 3 |c| { par p |d| { par 40 |e| { y[a, b, c, d, e] = 0 } } } } }
    par n - 5 |a| { par m - 7 |b| { par 3 |c| { par p |d| { par 40 |e| { y[a, b, c, d, e] = x[a + 1, b, c, d, e] } } } } }
    return y
}"""


@pytest.mark.parametrize(("n", "m"), [(3, 4), (6, 4), (3, 9), (7, 9), (5, 7)])
def test_loops_of_no_turn_have_no_blocks(n: int, m: int) -> None:
    text = FOUR.replace("WHERE", "")
    made = driver.lower(driver.parse(text)["f"], "sm_90a")
    (function,) = parse(text).functions
    arrays = {"x": np.arange(1, n * m * 120 + 1, dtype=np.int32).reshape(n, m, 3, 1, 40)}
    ran = run_plan(function, made.plan, arrays, {})
    assert not ran.reports and np.array_equal(results(function, ran)["y"], interpret(function, arrays, {})["y"])
    assert is_proved(proved(made.function, made.plan))


def test_what_is_promised_needs_no_maximum() -> None:
    made = driver.lower(driver.parse(FOUR.replace("WHERE", "\n    where n >= 5, m >= 7\n"))["f"], "sm_90a")
    axes = [str(axis.extent) for kernel in k.kernels(made.plan.steps) for axis in kernel.axes]
    assert not [extent for extent in axes if "max" in extent]
    assert is_proved(proved(made.function, made.plan))


PLAN = """plan f
    param x: i32[n]
    result y: i32[n]
    size n
{
    launch f_y
    launch f_z
}

kernel f_y
    buffer x: i32[n]
    buffer y: i32[n] role result
    size n
    writes y
    axis block.x thread < 256
    axis grid.x i_block < ((n + 255) / 256)
{
    let i: i32 = i32(256 * i_block + thread)
    if (i32(i) < i32(n)) {
        y[i] = x[i]
    }
}

kernel f_z
    buffer x: i32[n]
    buffer y: i32[n] role result
    size n
    writes y
    axis block.x thread < 32
    axis grid.x z < EXTENT * EXTENT
{
    let a: i32 = i32(z % EXTENT)
    let b: i32 = i32(z / EXTENT)
    if (i32(thread) == 0:i32) {
        if (i32(n) <= 4:i32) {
            if (i32(n) >= 1:i32) {
                y[0] = x[n - 1]
            }
        }
    }
}
"""


@pytest.mark.parametrize(("extent", "right"), [("min(n - 5, 3)", False), ("max(min(n - 5, 3), 0)", True)])
def test_digits_of_an_axis_have_extents_that_are_not_below_0(extent: str, right: bool) -> None:
    """Blocks of which it was said that there are none wrote what nobody asked about."""
    text = "fn f(x: i32[n]): i32[n] { new y: i32[n]  par n |i| { y[i] = x[i] } return y }"
    plan = parse_plan(PLAN.replace("EXTENT", extent))
    (function,) = parse(text).functions
    ran = run_plan(function, plan, {"x": np.array([1, 2, 3], np.int32)}, {})
    assert ([*results(function, ran)["y"]] == [1, 2, 3]) == right
    asked = question(driver.parse(text)["f"], plan)
    tags = search(asked)
    tag = Statement(0, (expr(0),), tuple(expr(0) for _ in asked.reading.events[-1].site.dims))
    assert is_proved(prove(asked, plan, replace(tags, events=(*tags.events[:-1], tag)))) == right
