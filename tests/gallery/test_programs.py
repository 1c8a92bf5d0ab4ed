"""Every program of the gallery, in every executor, against its reference in NumPy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from references import BY_NAME, EXAMPLES, Example, Sizes, distance
from texpr import driver
from texpr.interp import run
from texpr.ir.program import Function
from texpr.support.span import Source

SMALL = [(example.name, at) for example in EXAMPLES for at in range(len(example.small))]
LARGE = [(example.name, at) for example in EXAMPLES for at in range(len(example.large))]


def case(value: object) -> str:
    """`matmul`, or for a set of sizes its place in the list."""
    return str(value)


@cache
def program(name: str) -> Function:
    """The function of example `name`."""
    example = BY_NAME[name]
    parsed = driver.parse(Source(example.path.name, example.path.read_text(encoding="utf-8")))
    return parsed[example.function]


def interpreted(example: Example, sizes: Sizes) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What the interpreter gives, and what it should."""
    arrays = example.make(np.random.default_rng(1), sizes)
    expected = example.reference(arrays, sizes)
    return run(program(example.name), arrays, sizes), expected


def agree(example: Example, actual: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Each output is there and within the example's bound."""
    assert actual.keys() == expected.keys()
    for name, wanted in expected.items():
        assert distance(np.asarray(actual[name]), wanted, example.floor) <= example.ulp, name


@pytest.mark.parametrize("name", BY_NAME)
def test_is_legal(name: str) -> None:
    example = BY_NAME[name]
    parsed = driver.parse(Source(example.path.name, example.path.read_text(encoding="utf-8")))
    assert driver.check(parsed) == ()


@pytest.mark.parametrize(("name", "at"), SMALL, ids=case)
def test_interpreter(name: str, at: int) -> None:
    example = BY_NAME[name]
    agree(example, *interpreted(example, example.small[at]))


@pytest.mark.parametrize(("name", "at"), LARGE, ids=case)
@pytest.mark.long
def test_interpreter_large(name: str, at: int) -> None:
    example = BY_NAME[name]
    agree(example, *interpreted(example, example.large[at]))
