"""Maxima and sums in one sweep over blocks of keys: programs in several words, proved, and right in the interpreter."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from texpr.frontend import parse
from texpr.interp import run
from texpr.ir import program as ir
from texpr.ir.proof import Verdict
from texpr.isa.registry import resolve
from texpr.proof.schedule import faithful
from texpr.schedule.apply import follow, laid_out, start
from texpr.schedule.builder import Schedule
from texpr.schedule.tree import exactly, loops

PROGRAM = parse(Path(__file__).with_name("online.te").read_text(encoding="utf-8"))

NAMES = [function.name for function in PROGRAM.functions]

KEYS = (1, 3, 64)


@cache
def swept(name: str, keys: int) -> ir.Function:
    """The function in one sweep, by the loop that makes `top`."""
    function = PROGRAM[name]
    maximum = next(s for s in loops(function.body) if any(b.name == "top" for b in s.reduce))
    words = ir.Argument(exactly(maximum.sym.name, function.body)), ir.Argument(keys)
    return laid_out(follow(start(function, resolve("cpu")), ir.Directive("online", words, ("over",)))).function


def given(function: ir.Function, sizes: dict[str, int], spread: float) -> dict[str, NDArray[np.generic]]:
    """Numbers, some of which are far apart, and rows of a mask."""
    rng, found = np.random.default_rng(len(sizes)), dict[str, NDArray[np.generic]]()
    for buffer in function.params:
        shape = [e.evaluate({sym: sizes[sym.name] for sym in e.syms()}) for e in buffer.shape]
        if buffer.dtype.is_float:
            found[buffer.name] = np.asarray(rng.standard_normal(shape) * spread if shape else 0.5, np.float32)
        else:
            found[buffer.name] = rng.integers(-1, 9, shape).astype(np.int32)
    return found


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_results(name: str, keys: int) -> None:
    """Of no keys, of blocks that are not full, and of scores whose exponentials would be beyond all numbers."""
    function = PROGRAM[name]
    for n in (0, 1, 3, 8):
        for spread in (1.0, 300.0):
            sizes = {sym.name: {"D": 4, "M": 7}.get(sym.name, n) for sym in function.sizes}
            data = given(function, sizes, spread)
            with np.errstate(all="ignore"):
                meant, found = (run(each, data, sizes) for each in (function, swept(name, keys)))
            for result, value in meant.items():
                assert np.allclose(value, found[result], rtol=1e-4, atol=1e-6, equal_nan=True), (n, spread)


@pytest.mark.parametrize("name", NAMES)
def test_proved(name: str) -> None:
    proof = faithful(PROGRAM[name], swept(name, 3))
    assert not (proof.of(Verdict.REFUSED) or proof.of(Verdict.UNDECIDED))
    told = [each.about for each in proof.obligations if each.what == "one sweep"]
    assert told and all("times the factor" in each for each in told)


def test_from_python() -> None:
    made = Schedule(PROGRAM["windowed"]).online("j'1", 32, name="over")
    assert "online(j'1, 32) -> over" in str(made)
    assert "online(j'1)" in str(Schedule(PROGRAM["windowed"]).online("j'1"))
