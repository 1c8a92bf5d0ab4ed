"""The product of examples/hopper: proved, right in the emulator, as planned in machine code, and as fast as is told."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.proofs import undecided

from texpr.driver import Compiled, load, lower
from texpr.ir import kernel as k

PATH = Path(__file__).parents[3] / "examples" / "hopper" / "matmul.te"


NAMES = ("ring", "roles", "late", "persistent")


@cache
def compiled(name: str = "ring") -> Compiled:
    function = load(PATH)["matmul"]
    return lower(function, "sm_90a", schedule=next(each for each in function.schedules if each.name == name))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_proved(name: str) -> None:
    made = compiled(name)
    assert not list(undecided(made.function, made.plan))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_right(name: str) -> None:
    made, random = compiled(name), np.random.default_rng(5)
    a, b = (random.integers(-3, 4, (rows, 320)) for rows in (128, 640 if name == "persistent" else 128))
    arguments = {"A": a.astype(ml_dtypes.bfloat16), "B": b.astype(ml_dtypes.bfloat16)}
    found = run_plan(made.function, made.plan, arguments)
    assert not found.reports, found.reports[0]
    np.testing.assert_array_equal(found.arrays["C"], (a @ b.T).astype(np.float32))


def test_two_warpgroups_share_the_columns() -> None:
    (kernel,) = k.kernels(compiled().plan.steps)
    (use,) = (stmt for stmt in k.walk(kernel.body) if isinstance(stmt, k.CollectiveAsync))
    (sync,) = (stmt for stmt in k.walk(kernel.body) if isinstance(stmt, k.FenceWarpgroup))
    left, right, total = use.registers
    assert (str(left.how), str(right.how)) == ("(128, 16, 1024)", "(128, 16, 1024)")
    assert "thread" in str(left.first) and "thread" not in str(right.first) and sync.registers[0].first == total.first
