"""A relaxed barrier of a cluster orders what engines do, and nothing that threads do themselves: by the proof, and by the
emulator."""

from __future__ import annotations

import pytest
from tests.instr.warpgroup.test_plain import compiled
from tests.lowering.emulated import run_plan
from tests.lowering.test_tensor import EXAMPLES, example
from tests.proof.plan.verdicts import is_proved

from texpr.emulator import Fault
from texpr.ir.kernel import Plan
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program import Function
from texpr.proof.search import proved


def by_threads() -> tuple[Function, Plan]:
    """A product whose threads read themselves what other blocks write next."""
    made = example("cluster")
    return made.function, made.plan


def text(plan: Plan) -> str:
    """The plan, without lines of the program."""
    return "".join(f"{each.split('  -- line')[0]}\n" for each in plan_text(plan).splitlines())


def test_what_threads_read_is_released() -> None:
    function, plan = by_threads()
    assert "barrier cluster covers WAR" in text(plan) and "relaxed" not in text(plan)
    assert is_proved(proved(function, parse_plan(text(plan))))


def test_what_tensor_cores_read_needs_no_release() -> None:
    made = compiled("a cluster")
    assert text(made.plan).count("barrier cluster relaxed covers WAR") == 1
    assert text(made.plan).count("barrier cluster covers RAW") == 1


@pytest.mark.planted
def test_no_relaxed_barrier_is_proved_where_threads_read() -> None:
    function, plan = by_threads()
    planted = parse_plan(text(plan).replace("barrier cluster covers WAR", "barrier cluster relaxed covers WAR"))
    assert not is_proved(proved(function, planted))
    arrays, sizes = EXAMPLES["cluster"]
    found = run_plan(function, planted, arrays, sizes)
    assert Fault.RACE in {each.fault for each in found.reports}
