"""The chart of steady turns: what is beside what follows from the plan, and no row has two things at once."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import pytest
from tests.schedule.tiles import CASES, PRODUCT, compiled

from texpr.draw.kinds import drawn
from texpr.draw.timeline.turns import Chart, turns_of
from texpr.driver import parse
from texpr.ir import kernel as k
from texpr.isa.registry import DEVICES, resolve

SIZES = {"M": 4096, "N": 4096, "K": 4096}
PLAIN = "fn f(x: f32[n]): f32[n] {\n    new y: f32[n]\n    par n |i| { y[i] = x[i] }\n    return y\n}"


@cache
def chart(name: str) -> Chart:
    made = compiled(name)
    (kernel,) = k.kernels(made.plan.steps)
    found = turns_of(kernel, {sym: SIZES[sym.name] for sym in made.plan.sizes}, made.target, DEVICES["sm_90a"])
    assert found is not None
    return found


def rows(told: str) -> dict[str, list[tuple[float, float]]]:
    """When each row has something, by what is told of it."""
    parts = re.findall(r"(matrix unit|warpgroup \d[^:]*|engine|slot \d[^:]*): ([^.]*)\.", told)
    return {name: [(float(a), float(b)) for a, b in re.findall(r"(\d+) to (\d+)", text)] for name, text in parts}


@pytest.mark.parametrize("name", ["late", "at once", "registers", "no roles"])
def test_no_row_has_two_things_at_once(name: str) -> None:
    found = rows(chart(name).told)
    assert {"matrix unit"} < {*found} and any(row.startswith("slot") for row in found)
    for row, bars in found.items():
        if row != "engine":  # a copy is on its way while the next one begins
            assert all(end <= begin + 1 for (_, end), (begin, _) in pairwise(sorted(bars))), row


def test_phases_count_the_turns_of_a_slot() -> None:
    told = chart("late").told
    turns = {(int(turn), int(phase)) for turn, phase in re.findall(r"turn (\d+), phase (\d+)", told)}
    assert len(turns) > 2 and all(phase == turn // 3 for turn, phase in turns)


def test_there_are_as_many_slots_as_the_plan_has() -> None:
    for name in ("late", "two late", "two slots"):
        slots = int(re.findall(r"stages=(\d)", CASES[name])[0])
        assert {int(each) for each in re.findall(r"slot (\d)", chart(name).told)} == {*range(slots)}


def test_it_is_part_of_the_timeline() -> None:
    function = parse(PRODUCT + CASES["late"])["f"]
    svg = drawn(function, "timeline", resolve("sm_90a"), SIZES, "auto", None)
    assert "turns 6 to 8 by the model" in svg and "the matrix unit is busy" in svg and "statements in order" in svg


def test_a_kernel_without_such_turns_has_no_chart() -> None:
    svg = drawn(parse(PLAIN)["f"], "timeline", resolve("sm_90a"), {}, "auto", None)
    assert "by the model" not in svg
