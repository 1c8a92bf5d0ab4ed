"""Worker processes: each answers for itself, and one that ends costs its trial."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.tune.programs import problem

from texpr.support.diagnostic import TexprError
from texpr.tune.crews.here import Here
from texpr.tune.outcome import FAILED, MEASURED, Outcome, task

BY_TILE = "tests.tune.programs:by_tile"


@pytest.fixture
def crew() -> Iterator[Here]:
    made = Here(BY_TILE, 2, 30.0)
    yield made
    made.close()


def outcome(crew: Here, tile: int) -> Outcome:
    crew.give(tile, task(problem(), {"tile": tile}))
    number, found = crew.take()
    assert number == tile
    return found


def test_a_worker_that_ends_costs_its_trial(crew: Here) -> None:
    killed = outcome(crew, 1)
    assert (killed.state, killed.reason) == (FAILED, "its worker was ended by SIGKILL")
    assert outcome(crew, 5).reason == "its worker ended with code 1: the last words"
    assert outcome(crew, 4).reason != "" and outcome(crew, 4).state == FAILED
    assert outcome(crew, 3) == Outcome(MEASURED, 3.0)  # what it prints is no answer
    assert crew.room == 2


def test_a_trial_that_takes_too_long_is_stopped() -> None:
    crew = Here(BY_TILE, 1, 0.2)
    try:
        assert outcome(crew, 2) == Outcome(FAILED, reason="it took longer than 0.2 s")
        assert outcome(crew, 9).value == 9.0
    finally:
        crew.close()


def test_no_process_is_left(crew: Here) -> None:
    numbers = [each.process.pid for each in crew._workers]  # pyright: ignore[reportPrivateUsage]
    crew.give(2, task(problem(), {"tile": 2}))
    crew.close()
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
    assert crew.room == 0


def test_workers_that_do_not_begin_are_an_error() -> None:
    with pytest.raises(
        TexprError, match=r"E0844: a worker does not begin: ModuleNotFoundError: No module named 'tests.tune.none'"
    ):
        Here("tests.tune.none:by_tile", 1, 1.0)
