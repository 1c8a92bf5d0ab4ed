"""What a search finds of turns, beside schedules that people have written: none of these takes less."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from texpr.affine.expr import Sym
from texpr.driver import Compiled, load, lower
from texpr.ir.kernel import kernels
from texpr.isa.cuda import WARPGROUP
from texpr.isa.registry import DEVICES
from texpr.model.plan.turn import computing, steady_parts
from texpr.model.turns import period

BENCH = Path(__file__).parents[2] / "bench"
SIZES = {"M": 4096, "N": 4096, "K": 4096}
DEVICE = DEVICES["sm_90a"]


@cache
def found() -> dict[str, object]:
    made = lower(load(BENCH / "ladder.te")["ladder"], "sm_90a", SIZES, schedule="auto")
    assert made.planned is not None and made.planned.nests[0].candidate is not None
    return dict(made.planned.nests[0].candidate.data()["turn"])


def turn_of(made: Compiled) -> float:
    """Clocks of a steady turn of a plan, of each warpgroup, for as many elements of the sum."""
    (kernel,) = kernels(made.plan.steps)
    parts = steady_parts(kernel, {Sym(name): size for name, size in SIZES.items()}, made.target, DEVICE)
    groups = computing(kernel) // WARPGROUP
    return period(parts, groups, 1) / groups


def test_a_product_keeps_the_tensor_core_busy() -> None:
    turn = found()
    assert turn["bound_reached"] and turn["unit"] == "matrix" and turn["interval"] == turn["units"]
    assert turn["slots_needed"] == 3 and turn["slots"] == 4
    assert [each["writes"] for each in turn["order"]] == ["sums"]  # type: ignore[attr-defined]


@pytest.mark.long
@pytest.mark.parametrize("name", ["cluster", "alone", "nolag", "roles", "persistent", "shared", "halves"])
def test_no_rung_of_the_ladder_takes_less(name: str) -> None:
    """In tiles of 128 × 256, as those found, turns of 64 terms."""
    function = load(BENCH / "ladder.te")["ladder"]
    schedule = next(each for each in function.schedules if each.name == name)
    clocks = turn_of(lower(function, "sm_90a", SIZES, schedule=schedule))
    assert clocks >= 0.99 * float(str(found()["interval"]))
