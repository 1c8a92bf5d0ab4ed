"""Modulo schedules of small turns: counted by hand, beside all that there are, beside CP-SAT, and looked at clock by clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texpr.model.modulo.order import Placed, is_own, ordered, parts_of
from texpr.model.modulo.ratio import Arc, least
from texpr.model.modulo.search import LATEST, Found, bounds, solve
from texpr.model.modulo.turn import Dependence, Operation, Turn, Use
from texpr.model.turns import Lanes, Part, Start, Wait
from texpr.support.record import replace


def product_of(clocks: int) -> Operation:
    return Operation("product", (Use("matrix", clocks),), clocks)


def lanes_of(clocks: int) -> Operation:
    return Operation("lanes", (Use("issue", clocks), Use("warpgroup", clocks, own=True)), clocks)


def circle(*operations: Operation, teams: int = 1, together: int = 1) -> Turn:
    """A turn of operations one behind the other, the first behind the last one of the turn before."""
    behind = [Dependence(at, at + 1, each.clocks) for at, each in enumerate(operations[:-1])]
    last = Dependence(len(operations) - 1, 0, operations[-1].clocks, 1)
    return Turn(operations, (*behind, last), teams, together)


ATTENTION = Turn(
    (product_of(256), lanes_of(400), lanes_of(100), product_of(256)),
    tuple(
        Dependence(one, other, clocks, turns)
        for one, other, clocks, turns in [
            (0, 1, 256, 0), (1, 2, 400, 0), (2, 3, 100, 0), (1, 0, 400, 1), (2, 1, 100, 1), (3, 2, 256, 1), (3, 3, 256, 1),
        ]
    ),
)  # fmt: skip
"""Scores, what lanes make of them, what has to wait for the sum of the turn before, and that sum."""

BY_HAND: dict[str, tuple[Turn, Fraction]] = {
    "one behind the other": (circle(product_of(50), lanes_of(100)), Fraction(150)),
    "two teams fill both units": (circle(product_of(50), lanes_of(100), teams=2), Fraction(100)),
    "two of the same length": (circle(product_of(100), lanes_of(100), teams=2), Fraction(100)),
    "three wait for a circle of four": (
        circle(lanes_of(10), product_of(10), lanes_of(10), product_of(10), teams=3), Fraction(20)
    ),
    "a third of a circle": (Turn((product_of(10),), (Dependence(0, 0, 100, 3),)), Fraction(100, 3)),
    "all of a block are waited for": (
        Turn((product_of(10),), (Dependence(0, 0, 30, 2, together=True),), teams=2, together=2), Fraction(10)
    ),
    "the sum goes on in the next turn": (ATTENTION, Fraction(656)),
    "two teams have no time to lose": (replace(ATTENTION, teams=2), Fraction(512)),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name: str) -> None:
    turn, interval = BY_HAND[name]
    found = solve(turn)
    assert found is not None and found.interval == interval
    assert faults(turn, found) == []


def test_what_waits_for_itself_has_no_schedule() -> None:
    assert solve(Turn((product_of(10),), (Dependence(0, 0, 10, 0),))) is None


def test_no_more_is_searched_than_is_allowed() -> None:
    turn = replace(ATTENTION, teams=2)
    found = solve(turn)
    assert found is not None and found.parts > 1
    assert solve(turn, 1) is None and solve(turn, found.parts) == found


# A schedule, looked at clock by clock.


def faults(turn: Turn, found: Found) -> list[str]:
    """What a schedule does not keep to: in a few turns of all teams."""
    wrong = [
        f"{each.before} before {each.after}"
        for each in turn.dependences
        if found.begins[each.after] + turn.distance(each) * found.interval < found.begins[each.before] + each.clocks
    ]
    for unit in turn.units:
        busy = sorted(_busy(turn, found, unit))
        wrong += [f"{unit} at {begin}" for (_, end), (begin, _) in pairwise(busy) if begin < end]
    return wrong


def _busy(turn: Turn, found: Found, unit: str) -> Iterator[tuple[Fraction, Fraction]]:
    """When a unit is busy in turns that meet those around zero: of one team where it is that team's own."""
    for each, begin in zip(turn.operations, found.begins, strict=True):
        for use in (use for use in each.uses if use.unit == unit and use.clocks):
            step = turn.teams if use.own else 1
            for number in range(-8 * LATEST, 8 * LATEST):
                at = begin + number * step * found.interval
                yield at, at + use.clocks


def test_a_schedule_that_is_none_is_seen() -> None:
    turn = replace(ATTENTION, teams=2)
    found = solve(turn)
    assert found is not None
    for at in range(len(turn.operations)):
        begins = tuple(begin + 300 * (number == at) for number, begin in enumerate(found.begins))
        assert faults(turn, replace(found, begins=begins))
    assert faults(turn, replace(found, interval=found.interval - 1))


# All schedules of small turns.


@st.composite
def small_turns(draw: st.DrawFn, most: int = 3) -> Turn:
    count = draw(st.integers(1, most))
    clocks = st.integers(1, 5)
    operations = tuple(draw(st.sampled_from((product_of, lanes_of)))(draw(clocks)) for _ in range(count))
    pairs = [(one, other) for one in range(count) for other in range(count)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True))
    dependences = tuple(
        Dependence(one, other, operations[one].clocks + draw(st.integers(0, 4)), draw(st.integers(0, 1)) if one < other else 1)
        for one, other in chosen
    )
    teams = draw(st.integers(1, 2))
    return Turn(operations, dependences, teams)


def best_of_all(turn: Turn, most: int = 3) -> Fraction | None:
    """The least interval of all ways to count which turn of an operation follows which of another on a unit: for each the
    greatest ratio of all simple circles. Shares nothing with the search."""
    count = len(turn.operations)
    arcs = [(each.before, each.after, each.clocks, turn.distance(each)) for each in turn.dependences]
    for at, each in enumerate(turn.operations):
        arcs += [(count, at, 0, 0), (at, count, each.clocks, LATEST * turn.teams)]
    shared = [
        (one, other, first.clocks, second.clocks, turn.teams if first.own else 1)
        for one, other in combinations(range(count), 2)
        for first in turn.operations[one].uses
        for second in turn.operations[other].uses
        if first.unit == second.unit
    ]
    alone = max(
        Fraction(sum(u.clocks for o in turn.operations for u in o.uses if u.unit == unit), _many(turn, unit))
        for unit in turn.units
    )
    found = (
        _least([*arcs, *(arc for pair, w in zip(shared, turns, strict=True) for arc in _apart(pair, w))], count + 1, alone)
        for turns in product(range(-most, most + 1), repeat=len(shared))
    )
    return min((each for each in found if each is not None), default=None)


def _many(turn: Turn, unit: str) -> int:
    return turn.teams if any(use.own for each in turn.operations for use in each.uses if use.unit == unit) else 1


def _apart(pair: tuple[int, int, int, int, int], w: int) -> Iterator[tuple[int, int, int, int]]:
    one, other, first, second, period = pair
    yield one, other, first, w * period
    yield other, one, second, (1 - w) * period


def _least(arcs: Sequence[tuple[int, int, int, int]], count: int, low: Fraction) -> Fraction | None:
    """The least interval that no simple circle forbids."""
    weights: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one, other, clocks, turns in arcs:
        weights.setdefault((one, other), []).append((clocks, turns))
    high: Fraction | float = inf
    for size in range(1, count + 1):
        for nodes in permutations(range(count), size):
            if nodes[0] != min(nodes):
                continue
            steps = [weights.get(step, []) for step in zip(nodes, (*nodes[1:], nodes[0]), strict=True)]
            for each in product(*steps):
                clocks, turns = (sum(part) for part in zip(*each, strict=True))
                if turns > 0:
                    low = max(low, Fraction(clocks, turns))
                elif turns < 0:
                    high = min(high, Fraction(clocks, turns))
                elif clocks > 0:
                    return None
    return low if low <= high else None


@settings(max_examples=25, deadline=None)
@given(small_turns(2))
def test_no_schedule_is_shorter(turn: Turn) -> None:
    found = solve(turn)
    assert (None if found is None else found.interval) == best_of_all(turn)
    assert found is None or faults(turn, found) == []


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(small_turns(3))
def test_no_schedule_of_three_operations_is_shorter(turn: Turn) -> None:
    found = solve(turn)
    assert (None if found is None else found.interval) == best_of_all(turn, 2)


@settings(max_examples=30, deadline=None)
@given(small_turns(6), st.integers(1, 3))
def test_schedules_keep_to_what_is_asked(turn: Turn, teams: int) -> None:
    turn = replace(turn, teams=teams)
    found, low = solve(turn), bounds(turn)
    if found is not None:
        assert low is not None and found.interval >= low.interval
        assert faults(turn, found) == []
        assert found.is_bound == (found.interval == low.interval)


def by_program(turn: Turn, scale: int, most: int) -> int | None:
    """The least interval in parts of a clock, by CP-SAT."""
    cp: Any = pytest.importorskip("ortools.sat.python.cp_model")
    model = cp.CpModel()
    interval = model.NewIntVar(1, most, "interval")
    times = [model.NewIntVar(0, LATEST * turn.teams * most, f"t{at}") for at in range(len(turn.operations))]
    for at, each in enumerate(turn.operations):
        model.Add(times[at] + each.clocks * scale <= LATEST * turn.teams * interval)
        for use in each.uses:
            model.Add(interval * (turn.teams if use.own else 1) >= use.clocks * scale)
    for each in turn.dependences:
        model.Add(times[each.after] + turn.distance(each) * interval >= times[each.before] + each.clocks * scale)
    for one, other in combinations(range(len(turn.operations)), 2):
        for first in turn.operations[one].uses:
            for second in (use for use in turn.operations[other].uses if use.unit == first.unit):
                w = model.NewIntVar(-2 * LATEST * turn.teams, 2 * LATEST * turn.teams, "")
                whole = model.NewIntVar(-2 * LATEST * turn.teams * most, 2 * LATEST * turn.teams * most, "")
                model.AddMultiplicationEquality(whole, [w, interval])
                period = turn.teams if first.own else 1
                model.Add(times[other] + period * whole >= times[one] + first.clocks * scale)
                model.Add(times[one] + period * interval - period * whole >= times[other] + second.clocks * scale)
    model.Minimize(interval)
    solver = cp.CpSolver()
    solver.parameters.num_workers = 1
    return int(solver.ObjectiveValue()) if solver.Solve(model) == cp.OPTIMAL else None


@pytest.mark.long
@pytest.mark.parametrize("name", list(BY_HAND)[:6])
def test_cp_sat_finds_the_same(name: str) -> None:
    turn, interval = BY_HAND[name]
    assert by_program(turn, interval.denominator, 2 * interval.numerator) == interval.numerator


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(small_turns(4))
def test_cp_sat_finds_nothing_shorter(turn: Turn) -> None:
    found = solve(turn)
    if found is not None:
        scale = found.interval.denominator
        assert by_program(turn, scale, 2 * found.interval.numerator) == found.interval.numerator


# Ratios of circles.


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-5, 20), st.integers(0, 2)), max_size=8))
def test_the_greatest_ratio_of_a_circle(arcs: list[tuple[int, int, int, int]]) -> None:
    found = least(4, [Arc(*each) for each in arcs])
    assert (None if found is None else found.interval) == _least(arcs, 4, Fraction(0))


# The code of a schedule.


def code_of(turn: Turn) -> list[tuple[int, int]]:
    found = solve(turn)
    assert found is not None
    return [(each.operation, each.late) for each in ordered(turn, found, range(len(turn.operations)))]


def test_a_team_alone_starts_the_next_scores_before_the_last_sum() -> None:
    assert code_of(ATTENTION) == [(0, 0), (2, 1), (3, 1), (1, 0)]


def test_of_many_teams_none_is_late() -> None:
    assert [late for _, late in code_of(circle(product_of(50), lanes_of(100), teams=4))] == [0, 0]


def test_waits_of_a_code() -> None:
    """The first one is for the sum of two turns before, and leaves the scores; the second for these, and leaves the next
    sum."""
    lanes = [Lanes(0.0, 0.0), Lanes(400.0, 400.0), Lanes(100.0, 100.0), Lanes(0.0, 0.0)]
    code = tuple(Placed(at, late) for at, late in code_of(ATTENTION))
    parts: tuple[Part, ...] = parts_of(ATTENTION, code, lanes, meets=False)
    kinds = [(type(each), each.pending) if isinstance(each, Wait) else type(each) for each in parts]
    assert kinds == [Start, (Wait, 1), Lanes, Start, (Wait, 1), Lanes]
    assert [is_own(each) for each in ATTENTION.operations] == [False, True, True, False]
