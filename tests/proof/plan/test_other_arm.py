"""Copies and holes at times in an arm of a branch that does not run: the other arm does, and has an order with them.

Of statements in the two arms of a branch one runs in an iteration, so they need none. A copy, and a hole, is none of the
program's, and may have a time in the arm that does not run. Such plans once were proved.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.proof.plan.verdicts import is_proved

from texpr import driver
from texpr.affine.expr import expr
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.proof.tags import Moved, Statement, Tag
from texpr.proof.plan import Verdict, prove, question
from texpr.proof.search import search
from texpr.support.record import replace

PROGRAM = """
fn f(x: i32[n]): i32[n] {{
    new y: i32[n]
    par n |i| {{
        new v: i32
        v = x[i]
        if i < 5 {{ {0} }} else {{ {1} }}
    }}
    return y
}}"""

PLAN = """plan f
    param x: i32[n]
    result y: i32[n]
    size n
{{
    launch f_y
}}

kernel f_y
    buffer x: i32[n]
    buffer y: i32[n] role result
    size n
    writes y
    axis block.x thread < 256
    axis grid.x i_block < ((n + 255) / 256)
{{
    let i: i32 = i32(256 * i_block + thread)
    if (i32(i) < i32(n)) {{
        let v: i32 = x[i]
        {0}
        if (i32(i) < 5:i32) {{
            {1}
        }} else {{
            {2}
        }}
    }}
}}
"""

ADD, DOUBLE = "v = v + 1  y[i] = v", "v = v * 2  y[i] = v"

Case = tuple[str, str, tuple[str, str, str], tuple[object, ...], bool]
"""The arms of the program; of the kernel, what is before a branch, and its arms; what each event is, by the number of a
statement, of one with holes elsewhere, or of one and a side of it that it is a copy at; and whether it is right."""

CASES: dict[str, Case] = {
    "a copy before": (
        ADD, DOUBLE, ("let u: i32 = 0:i32  u = v", "v = (v + 1:i32) y[i] = v", "u = (u * 2:i32) y[i] = u"),
        (0, None, (1, -1), 1, 2, 3, 4), True,
    ),
    "a copy behind what the other arm writes": (
        ADD, DOUBLE, ("let u: i32 = 0:i32", "v = (v + 1:i32) y[i] = v", "u = (v * 2:i32) u = v y[i] = u"),
        (0, None, 1, 2, 3, (1, -1), 4), False,
    ),
    "a copy of what the other arm wrote": (
        DOUBLE, "y[i] = v  v = v + 1", ("let u: i32 = 0:i32", "v = (v * 2:i32) y[i] = v", "v = (v + 1:i32) u = v y[i] = u"),
        (0, None, 1, 2, 4, (1, -1), 3), False,
    ),
    "a hole in the other arm": (
        "v = 7  y[i] = v", "y[i] = v + 1", ("v = 7:i32", "y[i] = v", "y[i] = (v + 1:i32)"), (0, "1", 2, 3), False,
    ),
    "a hole that nobody reads": (
        "v = 7  y[i] = v", "y[i] = 1", ("v = 7:i32", "y[i] = v", "y[i] = 1:i32"), (0, "1", 2, 3), True,
    ),
    "a hole behind what the arm writes": (
        "v = 7  y[i] = v", "v = 8  y[i] = v + 1", ("", "v = 7:i32 y[i] = v", "v = 8:i32 v = 7:i32 y[i] = (v + 1:i32)"),
        (0, 1, 2, 3, "1", 4), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_other_arm_has_an_order_with_what_the_program_does_not_do(name: str) -> None:
    *arms, texts, said, right = CASES[name]
    text, plan = PROGRAM.format(*arms), parse_plan(PLAN.format(*texts))
    (function,) = parse(text).functions
    arrays = {"x": np.arange(3, 13, dtype=np.int32)}
    ran = run_plan(function, plan, arrays, {})
    assert np.array_equal(results(function, ran)["y"], interpret(function, arrays, {})["y"]) == right
    asked = question(driver.parse(text)["f"], plan)
    (loop,) = asked.program.actions[0].spot.loops
    (block, thread), own = asked.reading.events[0].site.dims, expr(loop.sym)
    at, inverse = (expr(block) * 256 + thread,), (own // 256, own % 256)

    def tag(each: object) -> Tag | None:
        match each:
            case int():
                return Statement(each, at, inverse)
            case str():
                return Statement(int(each), at, inverse, True)
            case (int(action), int(side)):
                return Moved(action, at, side, (), inverse)
            case _:
                return None

    proof = prove(asked, plan, replace(search(asked), events=tuple(map(tag, said))))
    assert is_proved(proof) == right and (right or proof.of(Verdict.REFUSED))
