"""What is proved is right where arrays lie in the same bytes, where copies go on by themselves, and in clusters.

As in `test_sound`, whose plans have none of that: these are altered in what it takes, and in everything else.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from importlib import import_module

import pytest
from tests.proof.plan.altered import memory
from tests.proof.plan.altered.plans import altered
from tests.proof.plan.sound_memory import MEMORY
from tests.proof.plan.test_sound import Count, Subject, all_is_right, holes, subject
from tests.schedule.laid import laid, lowered

from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.proof.plan.flow import Flow
from texpr.proof.read import order

SIZES = ((5, 3), (1, 2), (7, 5))


@cache
def named(name: str) -> Subject:
    """A program of `MEMORY`, lowered."""
    text, directives = MEMORY[name]
    (function,) = parse(text, "t.te").functions
    made = laid(text, directives) if directives else lowered(function, function)
    return subject(made.function, made.plan, 1, SIZES)


def alter(plan: k.Plan, rng: random.Random) -> tuple[str, k.Plan] | None:
    """One alteration, more often of what is told here."""
    if rng.random() < 0.35:
        return altered(plan, rng)
    return altered(plan, rng, memory.BODIES, memory.KERNELS)


def test_what_is_proved_is_right() -> None:
    rng, count = random.Random(1), Count()
    for name in MEMORY:
        assert not list(holes(named(name), 2, rng, count, alter)), name
    assert count.wrong > 10 and count.right > 1


def nothing(*_: object) -> Iterator[object]:
    """In place of questions."""
    return iter(())


def anyone_meets(stmt: k.Stmt, settled: bool, real=order._meets) -> int:  # pyright: ignore
    """How many threads meet at a barrier, where blocks of a cluster are taken for one."""
    return order.CLUSTER if isinstance(stmt, k.Barrier) and stmt.whole else real(stmt, settled)


PROVER = import_module("texpr.proof.plan.prove")._Prover


@pytest.mark.planted
@pytest.mark.parametrize(
    ("name", "owner", "what", "instead"),
    [
        ("living", PROVER, "arenas", nothing),  # arrays in the same bytes are not asked about
        ("staged", Flow, "landings", lambda *_: None),  # a copy has landed where it starts
        ("cluster", Flow, "strayed", lambda *_: None),  # no block ends
        ("sweeps", order, "_meets", anyone_meets),  # blocks meet at barriers of their own
    ],
    ids=["bytes", "copies", "ends", "barriers"],
)  # fmt: skip
def test_planted_holes_are_found(name: str, owner: object, what: str, instead: object, monkeypatch: pytest.MonkeyPatch) -> None:
    on, rng = named(name), random.Random(f"{name}1")
    monkeypatch.setattr(owner, what, instead)
    assert next(holes(on, 400, rng, Count(), alter), None)


@pytest.mark.long
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("name", MEMORY)
def test_what_is_proved_of_small_programs_is_right(name: str, part: int) -> None:
    all_is_right(named(name), f"{name} {part}", alter)
