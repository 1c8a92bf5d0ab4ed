"""Both readings of the same launch: what the plan says before nvcc has run, and what its machine code says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.gallery.scheduled import CASES

from references import BY_NAME
from texpr.driver import Compiled, load, lower
from texpr.explain import explain
from texpr.ir.program.selection import AUTO
from texpr.toolchain import this_machine

NEAR = 0.15
"""By how much the readings may differ."""


def example(name: str, sizes: dict[str, int]) -> Compiled:
    """A program of the gallery, as the compiler lays it out."""
    return lower(load(BY_NAME[name].path)[BY_NAME[name].function], "sm_90a", sizes, schedule=AUTO)


def scheduled(function: str, schedule: str | None, sizes: dict[str, int]) -> Compiled:
    """One that is laid out by hand."""
    case = next(c for c in CASES if c.function == function and schedule in c.schedules)
    return case.lowered(schedule, tuple(sizes.items()))


def speed(compiled: Compiled) -> dict[str, Any]:
    """What is told of it, where there is machine code."""
    found: dict[str, Any] = explain(compiled, this_machine())["speed"]
    if any(kernel["code"] is None for kernel in found["kernels"].values()):
        pytest.skip("no nvcc, or no nvdisasm")
    return found


def compared(found: dict[str, Any]) -> None:
    """Of each kernel, the bounds, and the units that need at least a fifth of them."""
    for kernel in found["kernels"].values():
        code = kernel["code"]
        assert code["whole"] and not code["unknown_opcodes"] and not code["unknown"]
        assert abs(code["plan_over_code"] - 1) <= NEAR
        for unit in ("issue", "fma", "special", "l1", "shared"):
            plan, real = (each["units_us"].get(unit, 0.0) for each in (kernel, code))
            if max(plan, real) > 0.2 * code["bound_us"] and unit in ("l1", "shared", "special"):
                assert plan == pytest.approx(real, rel=NEAR), unit


def test_readings_agree_on_softmax() -> None:
    found = speed(example("softmax", {"M": 8192, "N": 4096}))
    compared(found)
    assert found["ratio"] == pytest.approx(1.0, abs=0.01)
    (kernel,) = found["kernels"].values()
    assert kernel["deciding"] == kernel["code"]["deciding"] == "dram"
    assert kernel["instructions_per_element"] == pytest.approx(kernel["code"]["instructions_per_element"], rel=NEAR)
    assert kernel["code"]["steady"]["clocks"] >= kernel["code"]["steady"]["least_clocks"]


def test_readings_agree_on_a_product_of_matrices() -> None:
    """8.6e9 products in lanes, each one instruction with its sum."""
    found = speed(scheduled("whole", "copies", {"M": 2048, "N": 2048, "K": 2048}))
    compared(found)
    (kernel,) = found["kernels"].values()
    assert kernel["deciding"] == kernel["code"]["deciding"] == "issue"
    assert kernel["code"]["units_us"]["fma"] == pytest.approx(2048**3 / (132 * 128 * 1.98e9) * 1e6, rel=0.04)
    assert 1.1 < found["ratio"] < 1.4


def test_readings_agree_on_a_product_that_nobody_scheduled() -> None:
    """A turn of the sum is 64 products and 4 loads of 16 bytes; copies and the loop are not a tenth of all."""
    path = Path(__file__).parents[2] / "bench" / "problems" / "matmul_f32.te"
    found = speed(lower(load(path)["matmul_f32"], "sm_90a", {"M": 2048, "N": 2048, "K": 2048}, schedule=AUTO))
    compared(found)
    (kernel,) = found["kernels"].values()
    code = kernel["code"]
    assert code["units_us"]["issue"] < 1.25 * code["units_us"]["fma"]
    assert code["units_us"]["lsu"] < 0.35 * code["units_us"]["fma"], "4 loads for 64 products, at a quarter of the rate"
    for unit in ("issue", "fma", "lsu"):
        assert kernel["units_us"][unit] == pytest.approx(code["units_us"][unit], rel=0.05), unit


def test_readings_agree_where_turns_that_stand_side_by_side_read_one_element() -> None:
    """Of `Z[p + r, …]` over both, written out, 6 rows are read, not 12."""
    found = speed(scheduled("conv2d", None, {"B": 8, "H": 64, "W": 64, "C": 64, "F": 128}))
    compared(found)
    (kernel,) = found["kernels"].values()
    assert kernel["units_us"]["lsu"] == pytest.approx(kernel["code"]["units_us"]["lsu"], rel=NEAR)


def test_what_tests_a_border_is_moved_out_of_loops_that_do_not_change_it() -> None:
    """Rows are compared once for all channels and columns; a count of each execution was above what machine code does."""
    path = Path(__file__).parents[2] / "bench" / "problems" / "convolutions.te"
    sizes = {"B": 8, "H": 56, "W": 56, "C": 128}
    found = speed(lower(load(path)["depthwise"], "sm_90a", sizes, schedule=AUTO))
    (kernel,) = found["kernels"].values()
    assert kernel["units_us"]["alu"] <= kernel["code"]["units_us"]["alu"]
    assert kernel["bound_us"] <= kernel["code"]["bound_us"]


def test_a_target_of_which_nothing_is_known() -> None:
    compiled = lower(load(BY_NAME["saxpy"].path)["saxpy"], "cpu", {"n": 4096}, schedule=AUTO)
    assert explain(compiled, this_machine())["speed"] is None


def test_open_sizes_are_said_to_be_assumed() -> None:
    compiled = lower(load(BY_NAME["saxpy"].path)["saxpy"], "sm_90a", {}, schedule=AUTO)
    found = explain(compiled, this_machine())["speed"]
    assert found["assumed"] == ["n"] and found["sizes"] == {"n": 4096}
