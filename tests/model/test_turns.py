"""Turns in which products go on while lanes work: clocks counted by hand, and what plans say of theirs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedule.linked import by_warpgroups, exact

from texpr.driver import Compiled, lower, parse
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.isa.registry import DEVICES
from texpr.model.plan.turn import steady_parts, turn_clocks
from texpr.model.plan.work import launched
from texpr.model.turns import TURNS, Lanes, Meet, Part, Ring, Span, Start, Wait, period, trace

ONE = Lanes(0.0, 100.0)
"""Lanes that nobody gets in the way of."""

BY_HAND: dict[str, tuple[list[Part], int, int, float]] = {
    "one behind the other": ([Start(50.0), Wait(0), ONE], 1, 1, 150.0),
    "one beside the other": ([Start(50.0), ONE, Wait(0)], 1, 1, 100.0),
    "a longer product": ([Start(300.0), ONE, Wait(0)], 1, 1, 300.0),
    "the second one is left": ([Start(50.0), Start(60.0), Wait(1), ONE, Wait(0)], 1, 1, 150.0),
    "both are waited for": ([Start(50.0), Start(60.0), Wait(0), ONE], 1, 1, 210.0),
    "one matrix unit": ([Start(50.0), Wait(0)], 2, 1, 100.0),
    "lanes share the slots": ([Lanes(160.0, 160.0)], 2, 1, 320.0),
    "a group alone has them": ([Lanes(160.0, 320.0)], 1, 1, 320.0),
    "of a block all wait": ([Lanes(160.0, 160.0), Start(80.0), Wait(0), Meet()], 2, 1, 480.0),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name: str) -> None:
    parts, groups, blocks, clocks = BY_HAND[name]
    assert period(parts, groups, blocks) == pytest.approx(clocks, rel=0.1)


PARTS = st.lists(
    st.one_of(
        st.floats(1, 500).map(Start), st.integers(0, 2).map(Wait), st.floats(1, 500).map(lambda n: Lanes(n, 1.5 * n)),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(PARTS, st.integers(1, 3), st.integers(1, 2))
def test_no_less_than_a_unit_needs(parts: list[Part], groups: int, blocks: int) -> None:
    issued = sum(part.issued for part in parts if isinstance(part, Lanes)) * groups * blocks
    assert period(parts, groups, blocks) >= 0.95 * issued - 1e-6


@settings(max_examples=60, deadline=None)
@given(PARTS)
def test_a_wait_for_all_takes_no_less(parts: list[Part]) -> None:
    """Of one warpgroup."""
    all_of = [Wait(0) if isinstance(part, Wait) else part for part in [*parts, Wait(0)]]
    assert period([*parts, Wait(0)], 1, 1) <= period(all_of, 1, 1) + 1e-6


RING = Ring(3, 100.0, 50.0)
LATE = (Lanes(16.0, 20.0), Start(80.0), Wait(1))
"""A turn whose product may go on in the next one."""


def of(spans: Iterable[Span], does: str, turn: int) -> list[Span]:
    return [each for each in spans if each.does == does and each.turn == turn]


@pytest.mark.parametrize("ring", [RING, Ring(2, 30.0, 10.0), Ring(4, 300.0, 400.0)])
@pytest.mark.parametrize("parts", [LATE, (Start(80.0), Wait(0), Lanes(100.0, 130.0), Meet())])
def test_slots_are_filled_when_all_are_done_with_them_and_used_when_they_are_full(parts: tuple[Part, ...], ring: Ring) -> None:
    late = any(isinstance(each, Wait) and each.pending for each in parts)
    if late and ring.slots < 3:
        return
    spans = trace(parts, 2, 1, ring)
    for turn in range(TURNS):
        (copy,) = of(spans, "copy", turn)
        assert all(each.begin >= copy.end for each in of(spans, "product", turn))
        free = [each.end for each in of(spans, "release", turn - ring.slots)]
        assert copy.begin >= max(free, default=0.0) and (turn < ring.slots or len(free) == 2)
        done = {each.group: each.end for each in of(spans, "product", turn)}
        assert all(each.end >= done[each.group] for each in of(spans, "release", turn))


def test_a_slow_engine_is_what_a_turn_takes() -> None:
    copies = [each.begin for each in trace(LATE, 2, 1, RING, 12) if each.does == "copy"]
    begins = [min(each.begin for each in of(trace(LATE, 2, 1, Ring(3, 400.0, 0.0), 12), "product", n)) for n in (4, 8)]
    assert (begins[1] - begins[0]) / 4 == pytest.approx(400.0)
    assert len(copies) == 12


def test_the_matrix_unit_does_one_product_at_a_time() -> None:
    products = sorted((each.begin, each.end) for each in trace(LATE, 3, 2, RING) if each.does == "product")
    assert all(end <= begin for (_, end), (begin, _) in pairwise(products))


def test_a_trace_takes_as_long_as_a_period_says() -> None:
    spans = trace(LATE, 2, 1, None)
    first, last = (max(each.end for each in of(spans, "wait", turn)) for turn in (TURNS // 2 - 1, TURNS - 1))
    assert (last - first) / (TURNS - TURNS // 2) == pytest.approx(period(LATE, 2, 1), rel=0.05)


@cache
def compiled(more: str) -> Compiled:
    function = parse(exact(64, 64, " align(16)") + by_warpgroups(last="r_9", more=more))["f"]
    return lower(function, "sm_90a", {"H": 8, "L": 4096}, schedule=function.schedules[0])


PLAIN, OVERLAPS = "pipeline(kb, stages=2)", "pipeline(kb, stages=2)\n    overlap(kb, dv, behind=js)"


def clocks(made: Compiled, text: str = "") -> tuple[float, float]:
    plan = parse_plan(text) if text else made.plan
    ((kernel, _),) = launched(plan.steps, {})
    found = turn_clocks(kernel, dict(plan.fixed), 1, made.target, DEVICES["sm_90a"])
    return found or (inf, inf)


def test_a_plan_says_what_goes_on() -> None:
    made = compiled(OVERLAPS)
    ((kernel, _),) = launched(made.plan.steps, {})
    parts = steady_parts(kernel, dict(made.plan.fixed), made.target, DEVICES["sm_90a"])
    assert [each for each in parts if isinstance(each, Start | Wait)] == [
        Start(128.0), Start(128.0), Wait(1), Wait(0), Wait(0)
    ]  # fmt: skip


def test_turns_that_overlap_are_shorter() -> None:
    late, at_once = clocks(compiled(OVERLAPS))
    assert late < 0.95 * at_once
    assert late < 0.95 * clocks(compiled(PLAIN))[0]


def test_it_is_the_waits_that_say_so() -> None:
    """With another number in the text of the plan nothing goes on."""
    text = plan_text(compiled(OVERLAPS).plan)
    changed = text.replace("wait_warpgroup 1 holds", "wait_warpgroup 0 holds")
    assert changed != text and clocks(compiled(OVERLAPS), changed)[0] > 1.05 * clocks(compiled(OVERLAPS))[0]


def test_a_kernel_without_groups_has_no_such_turn() -> None:
    function = parse("fn f(x: f32[n]): f32[n] {\n    new y: f32[n]\n    par n |i| { y[i] = x[i] }\n    return y\n}")["f"]
    assert clocks(lower(function, "sm_90a", {"n": 4096})) == (inf, inf)
