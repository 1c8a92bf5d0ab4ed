"""What is proved is right: programs as they are laid out are altered at random, with what is noted of them, and interpreted."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.proof.schedule.altered import altered, noted_otherwise
from tests.proof.schedule.trials import drawn, goes_wrong, is_proved, proof

from texpr.ir import program as ir
from texpr.ir.program.verify import verify_function
from texpr.support.diagnostic import CompilerBug

SHORT = 4
LONG = 400
TIMES = 10


def other(laid: ir.Function, random: Random) -> ir.Function | None:
    """A program altered once or twice, that is well formed."""
    found = altered(laid, random)
    if random.random() < 0.3:
        found = altered(found, random)
    try:
        verify_function(found)
    except CompilerBug:
        return None
    return None if found is laid else found


def tried(seeds: range) -> Counter[str]:
    """Whatever goes wrong is not proved, whatever is noted of it."""
    counts = Counter[str]()
    for seed in seeds:
        trial, laid = drawn(seed)
        random = Random(seed)
        if not is_proved(proof(trial, laid)):
            continue
        for found in (other(laid, random) for _ in range(TIMES)):
            if found is None:
                continue
            wrong = goes_wrong(trial, found)
            counts["wrong" if wrong else "not wrong"] += 1
            told = (found, noted_otherwise(found, random), noted_otherwise(noted_otherwise(found, random), random))
            proved = [is_proved(proof(trial, each)) for each in told]
            counts["proved"] += sum(proved)
            assert not (wrong and any(proved)), f"seed {seed}"
    return counts


@pytest.mark.parametrize("first", range(0, SHORT, 4))
def test_what_goes_wrong_is_not_proved(first: int) -> None:
    counts = tried(range(first, first + 4))
    assert counts["wrong"] and counts["proved"]


@pytest.mark.long
@pytest.mark.parametrize("first", range(SHORT, LONG, 8))
def test_of_many_what_goes_wrong_is_not_proved(first: int) -> None:
    tried(range(first, first + 8))
