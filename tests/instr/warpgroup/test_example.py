"""The product of examples/hopper: proved, right in the emulator, as planned in machine code, and as fast as is told."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.proofs import undecided

from texpr.driver import Compiled, load, lower
from texpr.ir import kernel as k

PATH = Path(__file__).parents[3] / "examples" / "hopper" / "matmul.te"


NAMES = ("ring", "roles", "late", "persistent")


PRODUCT = PATH.with_name("product.te")


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


@cache
def product() -> Compiled:
    function = load(PRODUCT)["product"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


def test_all_at_once_is_proved_and_right() -> None:
    """Tiles in turn, roles, and results that the engine stores, of rows that end anywhere."""
    made, random = product(), np.random.default_rng(5)
    assert not list(undecided(made.function, made.plan))
    a, b = (random.integers(-1, 2, (rows, 72)) for rows in (40, 1032))
    arguments = {"A": a.astype(ml_dtypes.bfloat16), "B": b.astype(ml_dtypes.bfloat16)}
    found = run_plan(made.function, made.plan, arguments)
    assert not found.reports, found.reports[0]
    np.testing.assert_array_equal(found.arrays["C"].astype(np.float32), (a @ b.T).astype(np.float32))


def test_all_at_once_spills_nothing() -> None:
    code = code_of(binary := built(product().source))
    assert spills_nothing(binary) and not serialised(binary) and "UTMASTG" in code
