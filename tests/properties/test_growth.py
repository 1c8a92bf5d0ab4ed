"""What compiling costs grows as the text does. Counted, so that no other work of the machine is in it."""

from __future__ import annotations

import pytest
from bench.common.growing import GROWING
from tests.steps import growth, pairs, steps

from texpr import driver

TWICE = 2.5
"""Of a text twice as long: what compares each statement with each other has four times as many steps."""


def compiled(kind: str, length: int) -> None:
    for function in driver.parse(GROWING[kind](length)).functions:
        driver.lower(function, "sm_90a", schedule="auto")


def comparing(kind: str, length: int) -> None:
    """As if compiling compared each statement with each other, in 2,000 steps a pair; it has some 100,000 a statement."""
    compiled(kind, length)
    pairs(length, 1000)


KINDS = "nests", "updates", "statements", "phases", "functions"


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_function_of_twice_as_many_statements(kind: str) -> None:
    assert growth(compiled, kind, length=20) < TWICE


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_function_of_two_hundred_statements(kind: str) -> None:
    assert growth(compiled, kind, length=100) < TWICE


def test_a_nest_of_twelve_loops() -> None:
    """No more than by the fourth power of loops; of what tries every subset of them there is 64 times as much."""
    assert growth(compiled, "deep", length=6) < 2**4


@pytest.mark.long
def test_a_file_of_products_convolutions_and_sweeps() -> None:
    assert growth(compiled, "functions", length=3) < TWICE


@pytest.mark.long
def test_a_file_of_two_hundred_functions() -> None:
    assert growth(compiled, "functions", length=100) < TWICE


@pytest.mark.parametrize("kind", ["updates", "statements"])
def test_what_compares_each_with_each_other_is_found(kind: str) -> None:
    assert growth(comparing, kind, length=20) > TWICE


def test_a_count_is_the_same_each_time() -> None:
    """Within what hangs on where objects lie in memory, by which some sets are in order."""
    (once,), (again,) = (steps(compiled, ("updates", 4), first=("updates", 2)) for _ in range(2))
    assert abs(once - again) < once / 100


def test_no_two_functions_of_a_file_are_alike() -> None:
    """Else what is remembered of one would be all there is to the next."""
    functions = driver.parse(GROWING["functions"](9)).functions
    texts = {driver.lower(f, "sm_90a", schedule="auto").source.replace(f.name, "") for f in functions}
    assert len(texts) == len(functions)
