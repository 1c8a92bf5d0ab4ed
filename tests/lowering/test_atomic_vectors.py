"""Atomic sums of neighbouring elements as one access, each as one step: from a schedule to numbers and to machine code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.planted import is_proved, open_of, plain

from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.value.structure import same
from texpr.isa.instructions.atomic import ORDERS, SCOPES, VECTORS
from texpr.isa.registry import INSTRUCTIONS, resolve
from texpr.support.diagnostic import CompilerBug

ROWS = """
fn f(x: f32[n, 64] align(16), at: i32[n], inout y: f32[m, 64] align(16))
    assume at in 0..m
{
    par n |i| reduce(y) #atomic(WORDS) { par 64 |j| { y[at[i], j] += 2 * x[i, j] } }
}
schedule f for cuda { vectorize(j, WIDTH) -> (jo, ji)  bind(i, grid.x)  bind(jo, block.x) }
"""
OPEN = ROWS.replace("[n, 64]", "[n, 4 * q]").replace("[m, 64]", "[m, 4 * q]").replace("par 64", "par 4 * q")
RAGGED = OPEN.replace("bind(jo, block.x)", "split(jo, 8) -> (jb, jt)  bind(jb, grid.y)  bind(jt, block.x)")
WHOLE = ROWS.replace("f32[", "i32[")
CASES = {
    "four": (ROWS, "relaxed", 4, "add= (2.0:f32 * v_x), ", "ADD.F32x4"),
    "two": (ROWS, "grid", 2, "add= (2.0:f32 * v_x), (2.0:f32 * v_x_1)", "ADD.F32x2"),
    "released": (ROWS, "release", 4, "order release", "ADD.F32x4"),
    "subtracted": (ROWS.replace("+=", "-="), "relaxed", 4, "add= neg((2.0:f32 * v_x)), ", "ADD.F32x4"),
    "rows of any length": (RAGGED, "relaxed", 4, "add= (2.0:f32 * v_x), ", "ADD.F32x4"),
    "integers": (WHOLE, "relaxed", 4, "", "RED"),
}
"""A text, words of its mark, the width, and what is in the plan and in the machine code."""


@cache
def compiled(name: str, target: str = "sm_90a") -> Compiled:
    text, words, width, *_ = CASES[name]
    function = parse(text.replace("WORDS", words).replace("WIDTH", str(width)))["f"]
    return lower(function, target, schedule=function.schedules[0])


def numbers(name: str, rows: int) -> dict[str, NDArray[Any]]:
    rng, of = np.random.default_rng(2), np.int32 if name == "integers" else np.float32
    arrays: Mapping[str, NDArray[Any]] = {"x": rng.integers(-3, 4, (rows, 64)), "y": rng.integers(-3, 4, (5, 64))}
    return {"at": rng.integers(0, 5, rows).astype(np.int32), **{key: each.astype(of) for key, each in arrays.items()}}


def copied(given: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {key: each.copy() for key, each in given.items()}


@pytest.mark.parametrize("name", CASES)
def test_plan_has_it_and_is_proved(name: str) -> None:
    """Integers have none: theirs are as many accesses."""
    made, wanted = compiled(name), CASES[name][3]
    lines = [line.split("  -- ")[0] for line in plan_text(made.plan).splitlines() if line.strip().startswith("atomics ")]
    assert (len(lines) == 1 and wanted in lines[0]) if wanted else not lines
    assert same(parse_plan(plan_text(made.plan)), made.plan) and not open_of(made, made.plan)


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    made, text = compiled(name), CASES[name][0].replace("WORDS", "grid").split("schedule")[0]
    for rows in (9, 1, 0):
        given = numbers(name, rows)
        wanted = run(parse(text)["f"], copied(given))["y"]
        for seed in (None, 1):
            found = run_plan(made.function, made.plan, copied(given), seed=seed)
            assert not found.reports
            np.testing.assert_array_equal(found.arrays["y"], wanted)


@pytest.mark.parametrize("name", CASES)
def test_machine_code(name: str) -> None:
    code = code_of(binary := built(compiled(name).source, "sm_90a"))
    assert CASES[name][4] in code and spills_nothing(binary)


def test_targets_before_have_as_many_accesses() -> None:
    code = code_of(built(compiled("four", "sm_80").source, "sm_80"))
    assert code.count("RED.E.ADD.F32.FTZ") == 4 and "F32x4" not in code


def test_records_are_what_is_printed() -> None:
    """Each has the verb that CUDA code is made of; only a grid and a cluster have global memory together."""
    for (op, of), counts in VECTORS.items():
        for count in counts:
            for order in ORDERS:
                for scope in SCOPES.values():
                    template = INSTRUCTIONS[f"red_{op}_v{count}_{of}_{order}_{scope}"].template(resolve("sm_90"))
                    assert template is not None and template.startswith(
                        f"red.{order}.{scope}.global.{op}.v{count}.{of} [{{y}}]"
                    )
    assert INSTRUCTIONS["red_add_v4_f32_relaxed_gpu"].template(resolve("sm_89")) is None


VALUES = "(2.0:f32 * v_x), (2.0:f32 * v_x_1), (2.0:f32 * v_x_2), (2.0:f32 * v_x_3)"
BUGS = {
    "no step": ("atomics y", "vector y", True),
    "of one block": (VALUES, f"{VALUES} at block", False),
    "of no order": (VALUES, f"{VALUES} order acquire", False),
    "three of four": (VALUES, VALUES.rpartition(",")[0], False),
    "a value twice": (VALUES, VALUES.replace("v_x_1", "v_x_2"), True),
    "other elements": ("y[at'd1, 4 * jo; ", "y[at'd1, -4 * jo + 60; ", True),
    "in the middle of a vector": ("y[at'd1, 4 * jo; ", "y[at'd1, 4 * jo + 1; ", False),
    "of another row": ("at'd1 = at[i]]", "at'd1 = at[0]]", True),
    "another operation": ("add= ", "max= ", False),
    "without a promise of where it begins": ("param y: f32[m, 64] align 16", "param y: f32[m, 64]", False),
}  # fmt: skip
"""What becomes what in the plan of four; the last says whether the emulator shows it."""


def planted(name: str) -> k.Plan:
    old, new, _ = BUGS[name]
    text = plain(compiled("four").plan)
    assert old in text, text
    if new.startswith("vector"):
        return parse_plan(text.replace(old, new).replace("add= ", "= "))
    return parse_plan(text.replace(old, new).replace("buffer y: f32[m, 64] align 16", new.replace("param", "buffer"))
                      if "promise" in name else text.replace(old, new))  # fmt: skip


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_none_is_proved(name: str) -> None:
    assert not is_proved(compiled("four"), lambda: planted(name))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug[2]])
def test_what_changes_results_is_shown(name: str) -> None:
    given = numbers("four", 9)
    wanted = run_plan(compiled("four").function, compiled("four").plan, copied(given)).arrays["y"]
    for seed in (1, None, 2, 3):
        try:
            found = run_plan(compiled("four").function, planted(name), copied(given), seed=seed)
        except (CompilerBug, RuntimeError, AssertionError):
            return
        if found.reports or not np.array_equal(found.arrays["y"], wanted):
            return
    pytest.fail("the emulator finds nothing")
