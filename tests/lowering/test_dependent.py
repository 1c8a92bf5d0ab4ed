"""Launches that start while the one before them ends: which do, where they wait, and that nothing else is different."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.machine_code import built, code_of

from texpr import driver
from texpr.driver import Compiled
from texpr.explain import explain
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.runtime import load_emulated
from texpr.support.diagnostic import TexprError
from texpr.toolchain import Toolchain, this_machine

CHAIN = """fn chain(a: f32[n, 64], b: f32[64, 64]): f32[n, 64] {
    new w: f32[n, 64]
    new v: f32[64, 64]
    new y: f32[n, 64]
    par n |i| { par 64 |j| { w[i, j] = a[i, j] + 1.0 } }
    par 64 |i| { par 64 |j| { v[i, j] = b[63 - i, j] } }
    par n |i| { par 64 |j| { y[i, j] = v[j, 63 - j] + w[n - 1 - i, j] + a[i, j] } }
    return y
}
"""
OFF, ON = "schedule chain for cuda { dependent(off) }", "schedule chain for cuda { dependent(on) }"

LOOP = """fn repeated(inout x: f32[n], t: f32[m]) {
    new y: f32[n]
    seq m |k| {
        par n |i| { y[i] = x[n - 1 - i] + t[k] }
        par n |i| { x[i] = y[n - 1 - i] }
    }
}
schedule repeated for cuda { together(k, off) }
"""
ONE = """fn one(inout x: f32[n, m]) { seq m - 1 |k| { par n |i| { x[i, k + 1] = x[n - 1 - i, k] } } }
schedule one for cuda { together(k, off) }
"""


def made(text: str, target: str = "sm_90a") -> Compiled:
    """A program of one function, by its schedule if it has one."""
    program = driver.parse(text)
    (function,) = program.functions
    schedules = program.schedules_of(function.name)
    return driver.lower(function, target, schedule=schedules[0] if schedules else None)


def steps(plan: k.Plan) -> list[tuple[bool, list[str]]]:
    """Of each launch whether it is dependent, and the kinds of its statements that are no declarations."""
    found = ((each, [s for s in each.kernel.body if not k.declares(s)]) for each in k.launches(plan.steps))
    return [(launch.dependent, [type(stmt).__name__ for stmt in body]) for launch, body in found]


def test_each_launch_but_the_first_waits_and_each_but_the_last_admits() -> None:
    """The second has nothing to do with the first: it waits at its end."""
    assert steps(made(CHAIN).plan) == [
        (False, ["AdmitLaunch", "If"]),
        (True, ["Store", "AwaitLaunches", "AdmitLaunch"]),
        (True, ["AwaitLaunches", "If"]),
    ]


def test_what_no_launch_writes_is_not_waited_for() -> None:
    (*_, last) = k.kernels(made(CHAIN).plan.steps)
    (wait,) = (stmt for stmt in last.body if isinstance(stmt, k.AwaitLaunches))
    assert wait.arrays == ("v", "w") and {buffer.name for buffer in last.buffers} == {"a", "v", "w", "y"}


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "cpu"])
def test_other_targets_have_no_such_launches(target: str) -> None:
    compiled = made(CHAIN, target)
    assert not any(dependent for dependent, _ in steps(compiled.plan)) and "launch" not in compiled.source.replace(
        "launch_bounds", ""
    )


def test_a_directive_turns_them_off() -> None:
    compiled = made(CHAIN + OFF)
    assert [(dependent, len(kinds)) for dependent, kinds in steps(compiled.plan)] == [(False, 1)] * 3
    assert steps(made(CHAIN + ON).plan) == steps(made(CHAIN).plan)


def test_no_target_has_them_that_lacks_them() -> None:
    with pytest.raises(TexprError, match="on sm_80 a launch begins when the one before it has ended"):
        made(CHAIN + ON, "sm_80")
    assert made(CHAIN + OFF, "sm_80").plan.steps


def test_steps_of_a_loop_wait_for_each_other() -> None:
    assert steps(made(LOOP).plan) == [(True, ["AwaitLaunches", "AdmitLaunch", "If"])] * 2
    assert steps(made(ONE).plan) == [(True, ["AwaitLaunches", "AdmitLaunch", "If"])]


def test_steps_that_may_be_one_launch_are_left_as_they_are() -> None:
    assert steps(made(LOOP.replace(", off", "")).plan) == [(False, ["If"])] * 2


def test_a_plan_of_one_launch_is_as_it_was() -> None:
    compiled = made("fn one(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = x[i] } return y }")
    assert steps(compiled.plan) == [(False, ["If"])]


def nothing(*_: object) -> tuple[dict[str, object], None]:
    """What a machine without a compiler knows of a plan."""
    return {}, None


def test_explain_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("texpr.explain.kernels.built", nothing)
    found = [each["dependent"] for each in explain(made(CHAIN), this_machine())["kernels"]]
    assert found == [None, {"waits_for": []}, {"waits_for": ["v", "w"]}]


def run(text: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What a plan of the chain gives through its launcher on the emulated device, and what it should."""
    a, b = (np.arange(rows * 64, dtype=np.float32).reshape(rows, 64) for rows in (37, 64))
    compiled = made(CHAIN)
    kernel = load_emulated(Toolchain(this_machine()), compiled.function, parse_plan(text), "sm_90a", seed=seed)
    j = np.arange(64)
    return np.asarray(kernel(a=a, b=b)), b[::-1][j, 63 - j] + (a + 1)[::-1] + a


@pytest.mark.parametrize("seed", [-1, -2, 0])
def test_results_are_those_of_launches_in_order(seed: int) -> None:
    got, wanted = run(plan_text(made(CHAIN).plan), seed)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.planted
@pytest.mark.parametrize("wait", ["    await launches of v, w\n", "    await launches\n"])
def test_the_emulator_sees_a_wait_that_is_dropped(wait: str) -> None:
    text = plan_text(made(CHAIN).plan)
    assert text.count(wait) == 1
    with pytest.raises(TexprError, match=r"data race on global .* in chain_y"):
        run(text.replace(wait, ""), -1)


def test_no_machine_code_reads_before_the_wait() -> None:
    """And what others write is not read as if it never changed; what nobody writes is."""
    code = code_of(built(made(CHAIN).source))
    _, *functions = re.split(r"\.text\.(\w+)", code)
    found = {
        name: re.findall(r"\b(ACQBULK|PREEXIT|LDG\.E(?:\.CONSTANT)?|STG\.E)", text)
        for name, text in zip(functions[::2], functions[1::2], strict=True)
        if "EXIT" in text
    }
    assert found["chain_w"] == ["PREEXIT", "LDG.E.CONSTANT", "STG.E"]
    assert found["chain_v"] == ["LDG.E.CONSTANT", "STG.E", "ACQBULK", "PREEXIT"]
    assert found["chain_y"][-1] == "STG.E" and sorted(found["chain_y"][:-1]) == ["ACQBULK", "LDG.E", "LDG.E", "LDG.E.CONSTANT"]
    assert found["chain_y"].index("ACQBULK") < found["chain_y"].index("LDG.E")
