"""Loops that join registers over lanes are known by their text; and what is one makes of each what all lanes had."""

import numpy as np
import pytest
from tests.lowering.machine import Machine

from texpr import driver
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.verify import verify
from texpr.proof.read.actions import bound
from texpr.proof.read.lanes import joins_lanes

PLAN = """
plan f
    param x: f32[64]
    result y: f32[64]
    result z: f32[64]
{{
    launch first
}}

kernel first
    buffer x: f32[64]
    buffer y: f32[64] role result
    buffer z: f32[64] role result
    writes y, z
    axis block.x t < 64
{{
    let a: f32 = x[t]
    let b: f32 = (2:f32 * x[t])
    {loop}
    y[t] = a
    z[t] = b
}}
"""

PROGRAM = """fn f(x: f32[64]): (f32[64], f32[64]) {
    new y: f32[64]
    new z: f32[64]
    par 64 |i| {
        y[i] = x[i]
        z[i] = x[i]
    }
    return (y, z)
}"""

BOTH = "exchange c = a ^ 16 shift s exchange d = b ^ 16 shift s"

JOINS = {
    "a sum": ("for s in 0..5 unroll { exchange c = a ^ 16 shift s a = (a + c) }", 32, np.sum, None),
    "lanes of half a warp": ("for s in 0..4 unroll { exchange c = a ^ 8 shift s a = (a + c) }", 16, np.sum, None),
    "the lane beside": ("for s in 0..1 unroll { exchange c = a ^ 1 shift s a = (a + c) }", 2, np.sum, None),
    "two": (f"for s in 0..5 unroll {{ {BOTH} a = (a + c) b = max(b, d) }}", 32, np.sum, np.max),
    "a tuple": (f"for s in 0..5 unroll {{ {BOTH} if (c > a) {{ a = c b = d }} }}", 32, np.max, np.max),
}

OTHERS = {
    "no exchange": "for s in 0..5 unroll { a = (a + a) }",
    "crosswise": f"for s in 0..5 unroll {{ {BOTH} a = (a + d) b = (b + c) }}",
    "of both": f"for s in 0..5 unroll {{ {BOTH} a = (a + (c * d)) }}",
    "into another": "for s in 0..5 unroll { exchange c = a ^ 16 shift s b = (b + c) }",
    "by 16 each time": "for s in 0..5 unroll { exchange c = a ^ 16 a = (a + c) }",
    "not down to 1": "for s in 0..4 unroll { exchange c = a ^ 16 shift s a = (a + c) }",
    "from the second on": "for s in 1..5 unroll { exchange c = a ^ 16 shift s a = (a + c) }",
    "every other turn": "for s in 0..5 by 2 unroll { exchange c = a ^ 16 shift s a = (a + c) }",
    "no power of two": "for s in 0..5 unroll { exchange c = a ^ 24 shift s a = (a + c) }",
    "a number beside": "for s in 0..5 unroll { exchange c = a ^ 16 shift s a = (a + 1:f32) }",
    "in some threads": "for s in 0..5 unroll { exchange c = a ^ 16 shift s if (i32(t % 2) == 0:i32) { a = (a + c) } }",
    "with an else": "for s in 0..5 unroll { exchange c = a ^ 16 shift s if (c > a) { a = c } else { a = (a + c) } }",
    "a store beside": "for s in 0..5 unroll { exchange c = a ^ 16 shift s a = (a + c) y[t] = c }",
    "a name between": "for s in 0..5 unroll { exchange c = a ^ 16 shift s let e: f32 = (a + c) a = e }",
    "exchanged behind": "for s in 0..5 unroll { exchange c = a ^ 16 shift s a = (a + c) exchange d = a ^ 16 shift s }",
    "a loop inside": "for s in 0..5 unroll { exchange c = a ^ 16 shift s for r in 0..2 { a = (a + c) } }",
    "for all alike": "for s in 0..5 unroll uniform { exchange c = a ^ 16 shift s a = (a + c) }",
}


def plan_with(loop: str) -> tuple[k.Plan, k.For]:
    plan = parse_plan(PLAN.format(loop=loop))
    (kernel,) = k.kernels(plan.steps)
    (found,) = (stmt for stmt in kernel.body if isinstance(stmt, k.For))
    return plan, found


@pytest.mark.parametrize("name", JOINS)
def test_what_joins_lanes_makes_of_each_what_all_had(name: str) -> None:
    text, lanes, first, second = JOINS[name]
    plan, loop = plan_with(text)
    verify(plan)
    assert joins_lanes(loop)
    x = np.random.default_rng(0).integers(-9, 10, 64).astype(np.float32)
    results = Machine(bound(driver.parse(PROGRAM)["f"], plan), {"x": x}, {}).run(plan)
    for result, had, join in ((results["y"], x, first), (results["z"], 2 * x, second)):
        expected = had if join is None else np.repeat(join(had.reshape(-1, lanes), axis=1), lanes)
        assert np.array_equal(result, expected)


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_anything_else_is_none(name: str) -> None:
    assert not joins_lanes(plan_with(OTHERS[name])[1])
