"""The examples of Blackwell's tensor core: right at ragged sizes, proved, and as the page on schedules shows it."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.instr.tensor_memory.scaled import CASES
from tests.lowering.emulated import require_right
from tests.proofs import undecided

from texpr.driver import Compiled, load, lower

EXAMPLE = Path(__file__).parents[3] / "examples" / "blackwell" / "product.te"


@pytest.fixture(scope="module")
def made() -> Compiled:
    function = load(EXAMPLE)["product"]
    return lower(function, "sm_100a", schedule=function.schedules[0])


@pytest.mark.parametrize("sizes", [(136, 264, 200), (3, 8, 0)])
def test_emulated(made: Compiled, sizes: tuple[int, int, int]) -> None:
    rows, columns, deep = sizes
    random = np.random.default_rng(3)
    a, b = (random.integers(-3, 4, (each, deep)).astype(ml_dtypes.bfloat16) for each in (rows, columns))
    wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(ml_dtypes.bfloat16)
    require_right(made, {"A": a, "B": b}, wanted, seed=1)


def test_proved(made: Compiled) -> None:
    assert not list(undecided(made.function, made.plan))


def test_pair() -> None:
    """Of two blocks, at sizes at which the second one has some rows, and half of the columns some."""
    function = load(EXAMPLE.parent / "pair.te")["product"]
    made = lower(function, "sm_100a", schedule=function.schedules[0])
    random = np.random.default_rng(4)
    a, b = (random.integers(-3, 4, (each, 136)).astype(ml_dtypes.bfloat16) for each in (136, 144))
    wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(ml_dtypes.bfloat16)
    require_right(made, {"A": a, "B": b}, wanted, seed=1)
    assert not list(undecided(made.function, made.plan))


def test_scaled() -> None:
    """What the page on schedules shows, and right at ragged sizes."""
    function = load(EXAMPLE.parent / "scaled.te")["product"]
    made = lower(function, "sm_100a", schedule=function.schedules[0])
    arguments, wanted = CASES["ring"].arguments((130, 136, 160))
    require_right(made, arguments, wanted, seed=1)
    assert not list(undecided(made.function, made.plan))
