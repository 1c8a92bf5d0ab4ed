"""Every program of the gallery is legal, and the interpreter gives what the reference does."""

from __future__ import annotations

import numpy as np
import pytest

from references import BY_NAME, EXAMPLES, Example, Sizes, distance
from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run
from texpr.ir.program import Function

CASES = [
    pytest.param(example, sizes, id=f"{example.name}-{'x'.join(map(str, sizes.values()))}")
    for example in EXAMPLES
    for sizes in (*example.small, *example.large)
]


def function_of(example: Example, consts: Sizes) -> Function:
    """The example's function, its consts fixed."""
    return parse(example.path.read_text(encoding="utf-8"), example.path.name, consts)[example.function]


@pytest.mark.parametrize("name", BY_NAME)
def test_is_legal(name: str) -> None:
    assert tuple(check(function_of(BY_NAME[name], {}))) == ()


@pytest.mark.parametrize(("example", "sizes"), CASES)
def test_interpreter(example: Example, sizes: Sizes) -> None:
    arrays = example.make(np.random.default_rng(1), sizes)
    expected = example.reference(arrays, sizes)
    consts, rest = example.split(sizes)
    actual = run(function_of(example, consts), arrays, rest)
    assert actual.keys() == expected.keys()
    for name, wanted in expected.items():
        assert distance(np.asarray(actual[name]), wanted, example.floor) <= example.ulp, name
