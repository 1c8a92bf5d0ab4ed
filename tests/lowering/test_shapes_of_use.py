"""Programs of shapes that users bring, by the schedule that is found and by none: proved, and run like the interpreter."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.lowering import native
from tests.lowering.emulated import results, run_plan
from tests.lowering.shapes_of_use import FREE_ONE_AFTER_ANOTHER, ONE_AFTER_ANOTHER, SHAPES
from tests.lowering.test_programs import arguments
from tests.proof.plan.verdicts import open_of

from texpr import driver
from texpr.driver import Compiled
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.selection import AUTO, Selected
from texpr.ir.proof import Verdict
from texpr.proof.search import proved

WAYS = [(name, way) for name in SHAPES for way in (AUTO, None)]


@cache
def made(name: str, target: str, way: Selected) -> Compiled:
    shape = SHAPES[name]
    return driver.lower(parse(shape.text).functions[0], target, shape.fixed, schedule=way)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize(("name", "way"), WAYS)
def test_it_is_proved(name: str, way: Selected, target: str) -> None:
    compiled = made(name, target, way)
    proof = proved(compiled.function, compiled.plan)
    assert [each.how for verdict in (Verdict.REFUSED, Verdict.UNDECIDED) for each in proof.of(verdict)] == []


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_it_runs_like_the_interpreter(name: str, way: Selected) -> None:
    shape, on_cpu, on_gpu = SHAPES[name], made(name, "cpu", way), made(name, "sm_90a", way)
    loaded = native.library([on_cpu.plan])
    function = parse(shape.text).functions[0]
    for sizes in shape.runs:
        every = {**shape.fixed, **sizes}
        given = arguments(function, every, shape.below)
        want = interpret(function, given, every)
        got = native.call(loaded, on_cpu.function, on_cpu.plan, given, sizes)
        for buffer, expected in want.items():
            np.testing.assert_array_equal(got[buffer], expected)
        for seed in (None, 0, 1):
            run = run_plan(on_gpu.function, on_gpu.plan, given, sizes, seed, on_gpu.source)
            assert run.reports == []
            for buffer, expected in want.items():
                np.testing.assert_array_equal(results(on_gpu.function, run)[buffer], expected)


@pytest.mark.planted
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_a_sum_is_moved_to_its_own_group(target: str) -> None:
    """Groups end where the promise says, and no element of another is taken for one's own."""
    compiled = made("a gradient of five groups", target, None)
    text = plan_text(compiled.plan)
    assert not open_of(proved(compiled.function, parse_plan(text)))
    rows = "g_point * (C / 5)" if target == "cpu" else "g * (C / 5)"
    moved = [line for line in text.splitlines() if rows in line and ("] = y_own" in line or "= y[" in line)]
    assert moved
    for line in moved:
        for wrong in ("0", rows.replace("(C / 5)", "((C + 5) / 5)"), rows.replace("(C / 5)", "5")):
            other = text.replace(line, line.replace(rows, wrong))
            assert open_of(proved(compiled.function, parse_plan(other))), wrong


@pytest.mark.planted
@pytest.mark.parametrize(("right", "wrong"), [("k_0 / W", "k_0 / H"), ("% D", "% H"), ("k_0 % W", "0"), ("k_1 + k_0", "k_1")])
def test_an_element_in_another_shape_is_its_own(right: str, wrong: str) -> None:
    compiled = made("written flat", "sm_90a", None)
    text = plan_text(compiled.plan)
    lines = [line for line in text.splitlines() if right in line]
    assert lines
    for line in lines:
        other = text.replace(line, line.replace(right, wrong, 1))
        assert open_of(proved(compiled.function, parse_plan(other)))


def test_a_loop_is_not_parted_by_what_it_reads() -> None:
    text = """
fn f(x: i32[n]): i32[16] {
    new y: i32[16]
    par 16 |b| { y[b] = 0 }
    par n |j| reduce(y) { if x[j] > 3 { y[x[j] % 16] += 1 } }
    return y
}
schedule f for sm_90a { serial(j) partition(j) split(j, 16) -> (jo, ji) }"""
    function = parse(text).functions[0]
    compiled = driver.lower(function, "sm_90a", schedule=function.schedules[0])
    proof = proved(compiled.function, compiled.plan)
    assert not proof.of(Verdict.REFUSED)
    given = {"x": np.random.default_rng(0).integers(0, 40, 37).astype(np.int32)}
    run = run_plan(compiled.function, compiled.plan, given, {"n": 37}, 0, compiled.source)
    assert run.reports == []
    np.testing.assert_array_equal(results(compiled.function, run)["y"], interpret(function, given, {"n": 37})["y"])


@pytest.mark.planted
@pytest.mark.parametrize("name", ["a sum for each row, where rows are free", "the same from the last row on"])
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_a_sum_is_of_its_own_row(name: str, target: str) -> None:
    """Rows whose order is free are apart: what is added to a row is the sum of that row."""
    text = plan_text((compiled := made(name, target, None)).plan)
    own = "b'1, i" if name.endswith("free") else "b'1, N - i - 1"
    (final,) = (line for line in text.splitlines() if f"y[{own}] = (y[{own}]" in line)
    reads = [line for line in text.splitlines() if "x[b'1, i, " in line]
    assert reads
    for line, right, wrong in (
        (final, own, "b'1, 0"),
        *((line, "x[b'1, i,", f"x[b'1, {at},") for line in reads for at in "0N"),
    ):
        other = text.replace(line, line.replace(right, wrong))
        assert open_of(proved(compiled.function, parse_plan(other))), wrong


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("program", [ONE_AFTER_ANOTHER, FREE_ONE_AFTER_ANOTHER], ids=["in turn", "of any order"])
def test_sums_one_after_another_into_what_another_loop_began(program: str, target: str) -> None:
    """By automatic plans; without one, a copy of what the first sum kept is undecided on a GPU where there are no turns."""
    compiled = driver.lower(parse(program).functions[0], target, schedule=AUTO)
    proof = proved(compiled.function, compiled.plan)
    assert not [each for verdict in (Verdict.REFUSED, Verdict.UNDECIDED) for each in proof.of(verdict)]
