"""What is proved is right where the engine brings tiles: to several blocks of a cluster, in runs, and into sums.

As in `test_sound_memory`, with what the engine does altered more often.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import pytest
from tests.proof.plan.altered import engine, memory
from tests.proof.plan.altered.plans import altered
from tests.proof.plan.sound_engine import ENGINE
from tests.proof.plan.test_sound import Count, Subject, all_is_right, holes, subject
from tests.schedule.laid import laid

from texpr.ir import kernel as k
from texpr.proof.plan.phases import Phases
from texpr.proof.read import order

SIZES = ((4, 3), (1, 2), (3, 2))


@cache
def named(name: str) -> Subject:
    """A program of `ENGINE`, lowered."""
    made = laid(*ENGINE[name])
    return subject(made.function, made.plan, 1, SIZES)


def alter(plan: k.Plan, rng: random.Random) -> tuple[str, k.Plan] | None:
    """One alteration, more often of what is told here."""
    way = rng.random()
    if way < 0.2:
        return altered(plan, rng)
    if way < 0.6:
        return altered(plan, rng, engine.WAITING, engine.KERNELS)
    return altered(plan, rng, *((memory.BODIES, memory.KERNELS) if way < 0.7 else (engine.BODIES, engine.KERNELS)))


def test_what_is_proved_is_right() -> None:
    rng, count = random.Random(1), Count()
    for name in ENGINE:
        assert not list(holes(named(name), 2, rng, count, alter)), name
    assert count.wrong > 8


def nothing(*_: object) -> Iterator[object]:
    """In place of questions."""
    return iter(())


@pytest.mark.planted
@pytest.mark.parametrize(
    ("name", "owner", "what", "instead"),
    [
        ("ring for two", order, "CLUSTER", order.BLOCK),  # a block's own barrier is enough for two blocks
        ("vector for two", Phases, "unseen", nothing),  # whether a barrier is made, and its phase begun, nobody asks
    ],
    ids=["barriers", "phases"],
)
def test_planted_holes_are_found(name: str, owner: object, what: str, instead: object, monkeypatch: pytest.MonkeyPatch) -> None:
    on, rng = named(name), random.Random(6)
    monkeypatch.setattr(owner, what, instead)
    assert next(holes(on, 400, rng, Count(), alter), None)


@pytest.mark.long
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("name", ENGINE)
def test_what_is_proved_of_small_programs_is_right(name: str, part: int) -> None:
    all_is_right(named(name), f"{name} {part}", alter)
