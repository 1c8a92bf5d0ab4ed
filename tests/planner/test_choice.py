"""Candidates by number: what a plan does without picks, with each of them, and with numbers of none."""

from __future__ import annotations

import pytest
from tests.planner.programs import MATMUL, function

from texpr.ir.program.text import print_directive
from texpr.isa.registry import resolve
from texpr.planner.choice import AS_PLANNED, NONE, Chooser
from texpr.planner.follow import Refused
from texpr.planner.nest import NoPlan
from texpr.planner.plan import plan
from texpr.planner.strategies.panels import PanelScript

POINT = "nest.4"
"""The nest of the product."""


def said(target: str, chooser: Chooser | None) -> list[str]:
    made = plan(function(MATMUL), resolve(target), chooser=chooser)
    return [] if made.schedule is None else [print_directive(each) for each in made.schedule.directives]


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_a_plan_without_picks_is_what_it_was_and_candidates_differ_from_it(target: str) -> None:
    chooser = Chooser({})
    alone = said(target, None)
    assert alone and said(target, chooser) == alone
    (point,) = chooser.points
    assert point.name == POINT
    assert (point.candidates[0], point.candidates[-1]) == (AS_PLANNED, NONE)
    assert said(target, Chooser({point.name: 0})) == alone
    found = [said(target, Chooser({point.name: at})) for at in (1, 2)]
    assert alone not in found and found[0] != found[1] and all(found)
    assert said(target, Chooser({point.name: len(point.candidates) - 1})) == []


def test_a_number_of_no_candidate_is_an_error() -> None:
    for number in (-1, 1000):
        with pytest.raises(NoPlan, match=f"no number {number}"):
            said("cpu", Chooser({POINT: number}))
    assert said("cpu", Chooser({"nest.77": 5})) == said("cpu", None)


def test_a_candidate_that_is_refused_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: PanelScript) -> None:
        self.must("split", "nowhere", 4)

    monkeypatch.setattr(PanelScript, "run", refused)
    with pytest.raises(Refused, match="E0903"):
        said("cpu", Chooser({POINT: 1}))
    assert said("cpu", Chooser({})) == []
