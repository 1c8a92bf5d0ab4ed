"""What compiling costs grows as the text does. Processor time, with room for machines that do other work, too."""

from __future__ import annotations

from time import process_time

import pytest
from bench.common.growing import GROWING

from texpr import driver

POWER = 1.6
"""Time may grow by this power of the length; what compares each statement with each other grows by 2."""


def seconds(kind: str, length: int) -> float:
    """The least of two: what came between one of them and its end is not ours."""
    found: list[float] = []
    for _ in range(2):
        started = process_time()
        for function in driver.parse(GROWING[kind](length)).functions:
            driver.lower(function, "sm_90a", schedule="auto")
        found.append(process_time() - started)
    return min(found)


@pytest.mark.parametrize("kind", ["nests", "updates", "statements", "phases"])
def test_a_function_of_four_times_as_many_statements(kind: str) -> None:
    seconds(kind, 4)
    assert seconds(kind, 80) < 4**POWER * seconds(kind, 20) + 0.1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["nests", "updates", "statements", "phases"])
def test_a_function_of_two_hundred_statements(kind: str) -> None:
    seconds(kind, 4)
    assert seconds(kind, 200) < 4**POWER * seconds(kind, 50) + 0.2


def test_a_nest_of_twelve_loops() -> None:
    assert seconds("deep", 12) < 3


def test_a_file_of_products_convolutions_and_sweeps() -> None:
    assert seconds("functions", 6) < 6 * 0.5


@pytest.mark.long
def test_a_file_of_two_hundred_functions() -> None:
    assert seconds("functions", 200) < 60


def test_no_two_functions_of_a_file_are_alike() -> None:
    """Else what is remembered of one would be all there is to the next."""
    functions = driver.parse(GROWING["functions"](9)).functions
    texts = {driver.lower(f, "sm_90a", schedule="auto").source.replace(f.name, "") for f in functions}
    assert len(texts) == len(functions)
