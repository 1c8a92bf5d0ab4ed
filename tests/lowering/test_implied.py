"""Dependences that others imply: what bisection finds is what looking at every one finds."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from texpr.lowering.build.team import Around
from texpr.lowering.dependences.conflict import Conflict
from texpr.lowering.dependences.implied import Implied
from texpr.support.record import Record


class Step(Record, dict=True):
    order: int

    @property
    def leaf(self) -> int:
        return self.order


class Pair(Record, dict=True):
    source: Step
    sink: Step
    carrier: str | None
    crosses: bool


INNER, OUTER = "inner", "outer"
AROUND = {
    **{at: Around(cast(Any, (OUTER,)), 1) for at in range(6)},
    **{at: Around(cast(Any, (OUTER, INNER)), 2) for at in range(6, 18)},
    **{at: Around(cast(Any, (OUTER,)), 1) for at in range(18, 24)},
}


def implies(near: Pair, far: Pair) -> bool:
    """As it is said: steps of one list, the one pair within the other, or a barrier of each turn on the way around."""
    if len({AROUND[step.order].list for step in (near.source, near.sink, far.source, far.sink)}) != 1:
        return False
    if far.crosses and not near.crosses:
        return False
    after, before = near.source.order >= far.source.order, near.sink.order <= far.sink.order
    if near.carrier == far.carrier:
        return after and before
    turned = near.carrier is None and AROUND[far.source.order].loops[-1:] == (far.carrier,)
    return turned and (after or before)


def drawn(random: Random) -> Pair:
    one, other = sorted(random.sample(range(24), 2))
    carrier = random.choice((None, None, INNER, OUTER))
    if carrier is not None and random.random() < 0.5:
        one, other = other, one
    return Pair(Step(one), Step(other), carrier, random.random() < 0.3)


def differing(seeds: range) -> int:
    """How often the two disagree."""
    wrong = 0
    for seed in seeds:
        random = Random(seed)
        found, every = Implied(cast(Any, AROUND)), list[Pair]()
        for _ in range(30):
            pair = drawn(random)
            wrong += found.has(cast(Conflict, pair)) != any(implies(near, pair) for near in every)
            if random.random() < 0.5:
                found.add(cast(Conflict, pair))
                every.append(pair)
    return wrong


def test_bisection_finds_what_there_is() -> None:
    assert differing(range(400)) == 0


def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Any, source: int, sink: int) -> bool:
        return False

    def first(self: Any, source: int, sink: int) -> bool:
        return bool(self.sinks) and self.sinks[0] <= sink

    for name, wrong in (("beside", never), ("within", first)):
        with monkeypatch.context() as patch:
            patch.setattr(f"texpr.lowering.dependences.implied._Innermost.{name}", wrong)
            assert differing(range(100)) > 0
