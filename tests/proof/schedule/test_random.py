"""Random schedules: none is said to be wrong, and of most it is proved that they keep to their programs."""

from __future__ import annotations

import pytest
from tests.proof.schedule.trials import drawn, is_proved, proof

from texpr.ir.proof import Verdict

SHORT = 40
LONG = 1000
MOST = 0.8
"""How many are proved at least; the rest splits by sizes, or leaves holes, in ways that nobody could show."""


def share(seeds: range, target: str) -> float:
    """How many of some trials are proved."""
    proved = 0
    for seed in seeds:
        trial, laid = drawn(seed, target)
        found = proof(trial, laid)
        assert not found.of(Verdict.REFUSED), f"{trial.text}\n{found.of(Verdict.REFUSED)[0]}"
        proved += is_proved(found)
    return proved / len(seeds)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_random_schedules_keep_to_their_programs(target: str) -> None:
    assert share(range(SHORT), target) > MOST


@pytest.mark.long
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_many_random_schedules_keep_to_their_programs(target: str) -> None:
    assert share(range(SHORT, LONG), target) > MOST
