"""Launches that may start before the one before them has ended: in order by waits, each in its place, and refused without."""

from __future__ import annotations

from functools import cache

import pytest

from texpr import driver
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program import Function
from texpr.ir.proof import Obligation, Verdict
from texpr.proof.common.launches import overtaking
from texpr.proof.search import proved

CHAIN = """fn chain(a: f32[n, 64], b: f32[64, 64]): f32[n, 64] {
    new w: f32[n, 64]
    new v: f32[64, 64]
    new y: f32[n, 64]
    par n |i| { par 64 |j| { w[i, j] = a[i, j] + 1.0 } }
    par 64 |i| { par 64 |j| { v[i, j] = b[63 - i, j] } }
    par n |i| { par 64 |j| { y[i, j] = v[j, 63 - j] + w[n - 1 - i, j] } }
    return y
}"""

OVERWRITES = """fn overwrites(inout x: f32[n, 64]): f32[n, 64] {
    new y: f32[n, 64]
    par n |i| { par 64 |j| { y[i, j] = x[n - 1 - i, j] } }
    par n |i| { par 64 |j| { x[i, j] = 0.0 } }
    return y
}"""

REPEATED = """fn repeated(inout x: f32[n], t: f32[m]) {
    new y: f32[n]
    seq m |k| {
        par n |i| { y[i] = x[n - 1 - i] + t[k] }
        par n |i| { x[i] = y[n - 1 - i] }
    }
}
schedule repeated for cuda { together(k, off) }"""

WAIT = "    await launches of v, w\n"
UNDER = "    if (i32(i'2) < i32(n)) {\n"


@cache
def lowered(text: str, target: str = "sm_90a") -> tuple[Function, str]:
    """A function, and the text of its plan."""
    program = driver.parse(text)
    (function,) = program.functions
    written = program.schedules_of(function.name)
    made = driver.lower(function, target, schedule=written[0] if written else None)
    return made.function, plan_text(made.plan)


def changed(text: str, old: str, new: str, count: int = 1) -> str:
    """`text` with one thing different."""
    assert text.count(old) == count
    return text.replace(old, new)


def refused(function: Function, text: str) -> list[Obligation]:
    """What of a plan is not proved."""
    found = proved(function, parse_plan(text)).obligations
    assert any(each.what == "launched behind others" for each in found)
    return [each for each in found if each.verdict is not Verdict.PROVED]


@pytest.mark.parametrize("text", [CHAIN, OVERWRITES, REPEATED], ids=["chain", "overwrites", "repeated"])
def test_plans_as_they_are_made_are_proved(text: str) -> None:
    assert refused(*lowered(text)) == []


@pytest.mark.planted
def test_a_wait_that_is_dropped() -> None:
    function, text = lowered(CHAIN)
    (found,) = refused(function, changed(text, WAIT, ""))
    assert found.how == "not all threads wait for the launch before" and found.kernel == "chain_y"


@pytest.mark.planted
def test_a_wait_that_is_dropped_where_nothing_is_in_common() -> None:
    """The last launch waits for this one, which then has not waited for the first."""
    function, text = lowered(CHAIN)
    (found,) = refused(function, changed(text, "    await launches\n", ""))
    assert found.kernel == "chain_v"


@pytest.mark.planted
def test_a_wait_behind_the_first_load() -> None:
    function, text = lowered(CHAIN)
    late = changed(text, WAIT, "").rstrip().removesuffix("}") + WAIT + "}\n"
    (found,) = refused(function, late)
    assert found.how == "v, w is touched before the wait"


@pytest.mark.planted
def test_a_wait_of_some_threads() -> None:
    """In a branch, which not all threads take, it is none."""
    function, text = lowered(CHAIN)
    (found,) = refused(function, changed(text, WAIT + UNDER, UNDER + WAIT))
    assert found.how == "not all threads wait for the launch before"


@pytest.mark.planted
@pytest.mark.parametrize(("named", "lacks"), [("v", "w"), ("w", "v")])
def test_a_wait_that_does_not_name_all(named: str, lacks: str) -> None:
    function, text = lowered(CHAIN)
    (found,) = refused(function, changed(text, "launches of v, w", f"launches of {named}"))
    assert found.how == f"the wait does not name {lacks}"


@pytest.mark.planted
def test_the_first_launch_of_a_plan_is_behind_none() -> None:
    function, text = lowered(CHAIN)
    (found,) = refused(function, changed(text, "launch chain_w\n", "launch chain_w dependent\n"))
    assert found.how == "no launch of the plan is before it"


@pytest.mark.planted
def test_what_is_overwritten_while_it_is_read() -> None:
    function, text = lowered(OVERWRITES)
    late = changed(text, "    await launches of x\n", "").rstrip().removesuffix("}") + "    await launches of x\n}\n"
    (found,) = refused(function, late)
    assert found.how == "x is touched before the wait"


@pytest.mark.planted
def test_the_next_launch_is_admitted_behind_the_wait() -> None:
    function, text = lowered(CHAIN)
    (found,) = refused(
        function, changed(text, "    await launches\n    admit launch\n", "    admit launch\n    await launches\n")
    )
    assert found.how == "AdmitLaunch is before the wait"


def test_where_the_next_launch_is_admitted_is_no_matter_otherwise() -> None:
    """It waits for the end of this one all the same: before, between and behind the last writes, or nowhere."""
    function, text = lowered(CHAIN)
    whole = changed(text, "    admit launch\n    if (i32(i) < i32(n)) {\n", "    if (i32(i) < i32(n)) {\n")
    inside = changed(whole, "    if (i32(i) < i32(n)) {\n", "    if (i32(i) < i32(n)) {\n        admit launch\n")
    assert refused(function, whole) == refused(function, inside) == []


def test_a_wait_too_many_is_right() -> None:
    function, text = lowered(CHAIN)
    assert refused(function, changed(text, WAIT, WAIT + WAIT)) == []


def test_steps_of_a_loop_are_behind_those_of_turns_before() -> None:
    """The second step of a turn reads what the first wrote, and that what the second of the turn before did."""
    function, text = lowered(REPEATED)
    assert text.count(" dependent\n") == 2 and refused(function, text) == []


@pytest.mark.planted
@pytest.mark.parametrize("step", ["repeated_y", "repeated_x"])
def test_a_step_of_a_loop_that_does_not_wait(step: str) -> None:
    function, text = lowered(REPEATED)
    head, tail = text.split(f"kernel {step} ")
    before, _, after = tail.partition("    await launches of x, y\n")
    (found,) = refused(function, f"{head}kernel {step} {before}{after}")
    assert found.kernel == step


COLUMNS = """plan two
    param x: f32[32]
    result y: f32[32]
    workspace w: f32[32]
{
    launch first
    launch second dependent
}

kernel first
    buffer x: f32[32]
    buffer w: f32[32] role local
    writes w
    axis block.x thread < 32
{
    w[thread] = x[thread]
}

kernel second
    buffer w: f32[32] role local
    buffer y: f32[32] role result
    writes y
    axis block.x thread < 32
    array shared first_column: u64[1] barriers
{
    {} columns take first_column[0] count 32 {}
    y[thread] = w[thread]
}
"""


@pytest.mark.planted
def test_columns_are_taken_behind_the_wait() -> None:
    """Else blocks that wait might hold columns that a block of the launch before waits for."""
    wait = "await launches of w"
    whys = [
        [why for _, why in overtaking(parse_plan(COLUMNS.replace("{}", one, 1).replace("{}", other, 1)))]
        for one, other in ((wait, ""), ("", wait))
    ]
    assert whys == [[""], ["TakeColumns is before the wait"]]
