"""What lanes mask on registers, in turns of which most mask nothing: one test a turn, and a copy without those of elements."""

from __future__ import annotations

from functools import cache

import pytest
from bench.common.attention import online
from tests.schedule.rows import differences, open_of

from texpr.driver import Compiled, lower, parse
from texpr.ir import program as ir
from texpr.ir.value import Op, walk
from texpr.schedule.rewrite import partition
from texpr.schedule.rewrite.partition import partitioned
from texpr.schedule.tree import Body
from texpr.support.record import replace

WIDE = " align(16)"
CASES = {
    "later keys": (online(d=64, keys=64, causal=True, align=WIDE), (1, 64, 65, 130)),
    "keys beyond the last": (online(d=16, keys=32), (1, 31, 64, 97)),
}


@cache
def compiled(name: str) -> Compiled:
    return lower(parse(CASES[name][0])["f"], "sm_80", schedule="auto")


def versions(function: ir.Function) -> list[ir.If]:
    """The branches of which both arms are what lanes do."""
    found = (stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.If) and stmt.orelse)
    return [each for each in found if all(isinstance(s, ir.Par) and s.fully for s in (*each.then, *each.orelse))]


def selects(body: Body) -> int:
    """How many there are in the values of statements."""
    values = (value for stmt in ir.walk(body) if isinstance(stmt, ir.Bind) for value in stmt.values)
    return sum(isinstance(node, Op) and node.name == "select" for value in values for node in walk(value))


@pytest.mark.parametrize("name", CASES)
def test_a_turn_is_tested_once(name: str) -> None:
    (branch,) = versions(compiled(name).function)
    assert (selects(branch.then), selects(branch.orelse)) == (0, 1)


@pytest.mark.parametrize("name", CASES)
def test_proved_for_all_sizes(name: str) -> None:
    assert open_of(compiled(name)) == []


@pytest.mark.parametrize("name, length", [(name, length) for name, (_, lengths) in CASES.items() for length in lengths])
def test_emulated(name: str, length: int) -> None:
    assert differences(compiled(name), parse(CASES[name][0])["f"], {"L": length}, 2**-6) == []


@pytest.mark.planted
@pytest.mark.parametrize("name", CASES)
def test_a_turn_too_many_that_masks_nothing_is_not_proved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = partition._least  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(partition, "_least", lambda margin, inner: None if (low := right(margin, inner)) is None else low + 64)
    made = lower(parse(CASES[name][0])["f"], "sm_80", schedule="auto")
    assert open_of(made)
    length = CASES[name][1][-1]
    assert differences(made, parse(CASES[name][0])["f"], {"L": length}, 2**-6) != []


def test_few_elements_of_a_lane_are_tested_each() -> None:
    (branch,) = versions(compiled("later keys").function)
    (lanes,) = branch.orelse
    assert isinstance(lanes, ir.Par)
    few = replace(lanes, body=tuple(s for s in ir.walk(lanes.body) if isinstance(s, ir.Bind)))
    function = replace(compiled("later keys").function, body=(few,))
    assert partitioned(function).body == (few,)
