"""One place for the copies of all iterations of a `par`: each copy keeps to one turn of the loops that number them.

Iterations have no order in the program, and get the kernel's. Plans in which that is none of iterations once were proved.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.proof.plan.verdicts import is_proved

from texpr import driver
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.proof.tags import Statement
from texpr.proof.plan import Verdict, prove, question
from texpr.proof.search import search
from texpr.support.record import replace

TEXT = """
fn f(x: i32[n, 4]): i32[n, 4] {
    new y: i32[n, 4]
    par n |b| {
        par 4 |i| {
            new v: i32[4]
            par 4 |j| { v[j] = x[b, j] * (i + 1) }
            y[b, i] = v[3] + v[1] * 2
        }
    }
    return y
}"""

PLAN = """plan f
    param x: i32[n, 4]
    result y: i32[n, 4]
    size n
{
    launch f_y
}

kernel f_y
    buffer x: i32[n, 4]
    buffer y: i32[n, 4] role result
    size n, b_block_base
    writes y
    axis block.x thread < 256
    axis grid.y b_block < ((n + 255) / 256) base b_block_base
    array local v: i32[4] "one thread touches it"
    array local u: i32[4] "one thread touches it"
{
    let b: i32 = i32(256 * b_block + thread)
    if (i32(b) < i32(n)) {
BODY
    }
}
"""


def put(array: str, i: str) -> str:
    """The copy of iteration `i`."""
    return f"for j in 0..4 unroll {{ {array}[j] = (x[b, j] * i32({i} + 1)) }}"


def store(array: str, i: str) -> str:
    """The result of iteration `i`."""
    return f"y[b, {i}] = ({array}[3] + ({array}[1] * 2:i32))"


RIGHT = {
    "forwards": f"for t in 0..4 {{ {put('v', 't')} {store('v', 't')} }}",
    "backwards": f"for t in 0..4 {{ {put('v', '-t + 3')} {store('v', '-t + 3')} }}",
    "by digits": f"for s in 0..2 {{ for t in 0..2 {{ {put('v', '-2 * t - s + 3')} {store('v', '-2 * t - s + 3')} }} }}",
}

LATE = "if (i32({t}) < {first}:i32) {{ {put} }} if (i32({t}) >= {first}:i32) {{ {store} }}"

WRONG: dict[str, tuple[str, dict[str, int]]] = {
    "two turns of one loop": (
        f"for t in 0..8 {{ {LATE.format(t='t', first=4, put=put('v', 't % 4'), store=store('v', 't % 4'))} }}",
        {"t": 4},
    ),
    "turns of a loop around": (
        f"for s in 0..2 {{ for t in 0..4 {{ {LATE.format(t='s', first=1, put=put('v', 't'), store=store('v', 't'))} }} }}",
        {"s": 1},
    ),
    "a read behind the loop": (
        f"for t in 0..4 {{ {put('v', '-t + 3')} }} {store('v', '3')} for s in 0..3 {{ {put('u', 's')} {store('u', 's')} }}",
        {},
    ),
}
"""By what turns the last event does the statement later than is found."""


def plan_of(body: str) -> k.Plan:
    """A plan of which each thread runs `body`."""
    return parse_plan(PLAN.replace("BODY", body))


def is_right(plan: k.Plan) -> bool:
    """Whether the emulator finds what the program says."""
    (function,) = parse(TEXT).functions
    arrays = {"x": np.arange(1, 21, dtype=np.int32).reshape(5, 4)}
    ran = run_plan(function, plan, arrays, {})
    return not ran.reports and np.array_equal(results(function, ran)["y"], interpret(function, arrays, {})["y"])


@pytest.mark.parametrize("name", RIGHT)
def test_iterations_have_the_order_of_turns(name: str) -> None:
    plan = plan_of(RIGHT[name])
    assert is_right(plan)
    asked = question(driver.parse(TEXT)["f"], plan)
    assert is_proved(prove(asked, plan, search(asked)))


@pytest.mark.parametrize("name", WRONG)
def test_a_copy_keeps_to_one_turn(name: str) -> None:
    body, later = WRONG[name]
    plan = plan_of(body)
    assert not is_right(plan)
    asked = question(driver.parse(TEXT)["f"], plan)
    tags = search(asked)
    *events, last = tags.events
    assert isinstance(last, Statement)
    dims = asked.reading.events[-1].site.dims
    inverse = tuple(e + later.get(sym.name, 0) for e, sym in zip(last.inverse, dims, strict=True))
    proof = prove(asked, plan, replace(tags, events=(*events, replace(last, inverse=inverse))))
    assert {each.what for each in proof.of(Verdict.REFUSED)} == {"in order"} and not proof.of(Verdict.UNDECIDED)
