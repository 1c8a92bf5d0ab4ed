"""Random wrong programs are refused, with sizes at which the interpreter sees the same happen; and only wrong ones are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.properties.generate import Generator

from texpr.checks import check
from texpr.frontend import parse
from texpr.interp.trace import conflicts
from texpr.ir.program import Function
from texpr.support.diagnostic import Diagnostic

SEEN_AS = {"E0401": {"E0720"}, "E0402": {"E0723"}}
"""For each code of the checks, what the interpreter calls it."""

SIZES = ((3, 4), (1, 1), (2, 0), (5, 2))


def _seen(function: Function, n: int, m: int) -> set[str]:
    numbers = np.random.default_rng(0)
    shapes = {"x": (n, m), "y": (n,), "w": (m,)}
    given = {name: numbers.integers(-4, 5, shape).astype(np.int32) for name, shape in shapes.items()}
    return {finding.code for finding in conflicts(function, given)}


def _witness(found: Diagnostic) -> tuple[int, int]:
    """The sizes that the diagnostic names; what it does not name may be anything, and is 3."""
    text = " ".join((found.message, *(note.text for note in found.notes)))
    named = {name: int(value) for name, value in re.findall(r"\b(n|m) = (\d+)", text)}
    return named.get("n", 3), named.get("m", 3)


def _try(seed: int, spoil: str) -> bool:
    """Whether the program was refused, after confirming it; one that passes must be right."""
    function = parse(Generator(seed, spoil=spoil).program(), "random.te").functions[0]
    found = check(function)
    for diagnostic in found:
        if diagnostic.code in SEEN_AS:
            n, m = _witness(diagnostic)
            assert _seen(function, n, m) & SEEN_AS[diagnostic.code], f"seed {seed}: not so: {diagnostic.message}"
    if not found:
        for n, m in SIZES:
            assert not _seen(function, n, m), f"seed {seed}: accepted, and wrong at n = {n}, m = {m}"
    return bool(found)


@pytest.mark.parametrize("spoil", ["race", "bounds"])
def test_random_wrong_programs_are_refused_for_a_true_reason(spoil: str) -> None:
    refused = [_try(seed, spoil) for seed in range(30)]
    assert sum(refused) >= 20, refused


@pytest.mark.long
@pytest.mark.parametrize("spoil", ["race", "bounds"])
def test_many_random_wrong_programs_are_refused_for_a_true_reason(spoil: str) -> None:
    refused = [_try(seed, spoil) for seed in range(30, 400)]
    assert sum(refused) >= 250, sum(refused)
