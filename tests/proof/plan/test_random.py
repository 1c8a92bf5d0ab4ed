"""Random programs: what the compiler makes of them is proved."""

import pytest
from tests.properties.generate import Generator

from texpr import driver
from texpr.proof.search import proved
from texpr.support.diagnostic import TexprError


def open_ones(seeds: range, target: str) -> tuple[int, list[int]]:
    """How many programs were lowered, and the seeds of those of which something is not proved."""
    count, left = 0, list[int]()
    for seed in seeds:
        try:
            compiled = driver.lower(driver.parse(Generator(seed).program())["f"], target)
        except TexprError:
            continue
        count += 1
        counts = proved(compiled.function, compiled.plan).counts
        if counts["refused"] or counts["undecided"]:
            left.append(seed)
    return count, left


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_random_programs_are_proved(target: str) -> None:
    count, left = open_ones(range(12), target)
    assert count >= 10
    assert not left


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("seed", [622, 666])
def test_what_was_overwritten_need_not_be_there(seed: int, target: str) -> None:
    """A register takes an element over from what the program wrote before, and overwrote."""
    assert open_ones(range(seed, seed + 1), target) == (1, [])


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_programs_once_open_are_proved(target: str) -> None:
    """Tiles of reversed subscripts, updates of copies, some left out, what was written over since, an index without a name, or
    with that of another loop, beside which it runs; rows from the last one on, which stay in one register after another."""
    for seed in (12, 44, 66, 105, 622, 666, 692, 722, 766, 834, 924, 928, 962, 1106, 1107, 3318, 5066):
        assert not open_ones(range(seed, seed + 1), target)[1]


@pytest.mark.long
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("part", range(10))
def test_two_thousand_random_programs_are_proved(part: int, target: str) -> None:
    count, left = open_ones(range(100 * part, 100 * (part + 1)), target)
    assert count >= 90
    assert not left
