"""Each pass of a nest gives a form that prints and reads back, and decides only what is its own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.ir.test_steps_verify import PROGRAM
from tests.snapshot import ROOT

from texpr import driver
from texpr.frontend import parse
from texpr.ir import program as ir
from texpr.ir.steps import Steps, leaves, program
from texpr.ir.steps.parse import parse_steps
from texpr.ir.steps.text import steps_text
from texpr.ir.steps.verify import verify
from texpr.ir.steps.work import Order
from texpr.lowering import lower
from texpr.lowering.nests import Lowered, lower_nest
from texpr.support.diagnostic import CompilerBug

FURTHER = """
fn far(x: f32[n, m]): f32[n, m] {
    new y: f32[n, m]
    par n |i| {
        new t: f32[m]
        par m |j| { t[j] = x[i, j] }
        par m |j| { y[i, j] = t[m - 1 - j] }
    }
    return y
}

fn apart(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = 2 * x[i] }
    return y
}
"""

PLAIN = parse(PROGRAM + FURTHER, "passes.te").functions
COPIED = driver.load(ROOT / "examples" / "tma" / "matmul.te").functions
CASES = [
    *((function, None, target) for function in PLAIN for target in ("sm_90a", "cpu")),
    *((function, function.schedules[0], "sm_90a") for function in COPIED),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].name}-{case[2]}")
def lowered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Lowered]:
    """The forms of all kernels of a function, as its passes give them."""
    function, schedule, target = request.param
    found: list[Lowered] = []

    def kept(*arguments: Any) -> Lowered:
        found.append(lower_nest(*arguments))
        return found[-1]

    monkeypatch.setattr(lower, "lower_nest", kept)
    driver.lower(function, target, schedule=schedule)
    return found


def forms(found: Lowered) -> tuple[Steps, Steps, Steps]:
    return found.built, found.placed, found.ordered.steps


def test_each_form_prints_and_reads_back(lowered: list[Lowered]) -> None:
    assert lowered
    for form in (form for each in lowered for form in forms(each)):
        text = steps_text(form)
        assert steps_text(parse_steps(text)) == text


def test_each_pass_decides_what_is_its_own(lowered: list[Lowered]) -> None:
    for built, placed, ordered in map(forms, lowered):
        assert not built.places and not built.budget and not ordered.budget
        assert placed.body is built.body and placed.nodes == built.nodes
        assert placed.places == ordered.places
        for field in ("axes", "coordinates", "grid", "loops", "reductions", "lets", "threads", "team", "hosts"):
            assert len({getattr(form, field) for form in (built, placed, ordered)}) == 1, field
        assert not any(isinstance(step.work, Order) for step in leaves(placed.nodes))
        assert placed.buffers == ordered.buffers and {*built.buffers} <= {*placed.buffers}


def test_a_form_that_is_not_complete_is_refused(lowered: list[Lowered]) -> None:
    for each in lowered:
        verify(each.ordered.steps)
        if any(isinstance(stmt, ir.New) for stmt in ir.walk(program(each.built.nodes))):
            with pytest.raises(CompilerBug):
                verify(each.built)
