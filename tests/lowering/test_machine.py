"""Plans run thread by thread by an oracle that shares nothing with printers and emulators, on all targets' plans."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.lowering import machine
from tests.lowering.mutants import mutants
from tests.lowering.programs import PROGRAMS, Program
from tests.lowering.test_programs import arguments, function_of
from tests.lowering.witnesses import WITNESSES
from tests.properties.generate import Generator

from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.kernel import verify as kernel_verify
from texpr.ir.program import Function
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.support.record import replace

TARGETS = ("sm_90a", "cpu")
SHORT = ("pivot_row", "arg_of_rows", "warp_teams", "scatter_sum", "many_levels")
SLOW = (
    "warp_teams",
    "custom_combiner",
    "arg_of_rows",
    "ragged",
    "total_of_two",
    "pivot_row",
    "loop_carried",
    "outer_product_reduction",
)


def compare(function: Function, target: str, given: dict[str, np.ndarray], sizes: dict[str, int], order: int = 0) -> None:
    plan, _ = lower(function, resolve(target))
    kernel_verify.verify(plan)
    want = interpret(function, given, sizes)
    got = machine.run(function, plan, given, sizes, order)
    for name, expected in want.items():
        np.testing.assert_array_equal(got[name], expected, f"{function.name}{sizes} on {target}: {name}")


def _run(program: Program, target: str, most: int) -> None:
    function = function_of(program)
    assert not check(function), check(function)[0]
    for sizes in program.sizes:
        if max(sizes.values()) <= most:
            compare(function, target, arguments(function, sizes, dict(program.below)), sizes)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("program", WITNESSES, ids=lambda p: p.name)
def test_witnesses(program: Program, target: str) -> None:
    _run(program, target, 300)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SHORT)
def test_particular_programs(name: str, target: str) -> None:
    _run(next(p for p in PROGRAMS if p.name == name), target, 5 if name in SLOW else 37)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_every_particular_program(program: Program, target: str) -> None:
    _run(program, target, 40)


def _random(seeds: range, sizes: tuple[tuple[int, int], ...]) -> None:
    for seed in seeds:
        function = parse(Generator(seed).program(), "random.te").functions[0]
        for n, m in sizes:
            numbers = np.random.default_rng(seed)
            shapes = {"x": (n, m), "y": (n,), "w": (m,)}
            given = {name: numbers.integers(-2, 3, shape).astype(np.int32) for name, shape in shapes.items()}
            for target in TARGETS:
                compare(function, target, given, {"n": n, "m": m}, seed)


def test_random_programs() -> None:
    _random(range(1000, 1004), ((3, 4),))


@pytest.mark.long
@pytest.mark.parametrize("start", range(1006, 1066, 5))
def test_many_random_programs(start: int) -> None:
    _random(range(start, start + 5), ((3, 4), (1, 2), (0, 3), (2, 35)))


TEAM = """
fn f(x: i32[n, 40]): i32[n, 40] {
    new y: i32[n, 40]
    par n |i| {
        new s: i32
        s = 0
        new v: i32[40]
        par 40 |j| { v[39 - j] = x[i, j] }
        par 40 |j| reduce(s) { s += v[j] * j }
        seq 2 |t| { par 40 |j| { y[i, j] = v[j] + s + t }
            par 40 |j| { v[39 - j] = y[i, j] } }
    }
    return y
}"""


def _planted() -> Iterator[tuple[str, k.Plan]]:
    function = parse(TEAM, "team.te").functions[0]
    plan, _ = lower(function, resolve("sm_90a"))
    for mutant in mutants(next(k.kernels(plan.steps))):
        yield mutant.what, replace(plan, steps=(k.Launch(mutant.kernel),))


def _is_caught(function: Function, plan: k.Plan, given: dict[str, np.ndarray]) -> bool:
    want = interpret(function, given)
    try:
        got = machine.run(function, plan, given)
    except machine.Fault:
        return True
    return any(not np.array_equal(got[name], want[name]) for name in want)


def test_planted_bugs_are_caught() -> None:
    """Barriers dropped, guards and loops one too long, shared memory made each thread's own."""
    function = parse(TEAM, "team.te").functions[0]
    given = {"x": np.arange(120, dtype=np.int32).reshape(3, 40) % 7}
    assert not _is_caught(function, lower(function, resolve("sm_90a"))[0], given)
    found = list(_planted())
    assert len(found) >= 10
    assert not [what for what, plan in found if not _is_caught(function, plan, given)]


LANES = """
fn lanes(x: i32[n]): i32[n] {
    new y: i32[n]
    seq n |j| { y[j] = x[j] + select(j > 0, y[j - 1], 0) }
    return y
}"""


def test_lanes_that_meet_are_caught() -> None:
    """A loop in order said to be one of independent lanes."""
    function = parse(LANES, "lanes.te").functions[0]
    plan, _ = lower(function, resolve("cpu"))
    kernel = next(k.kernels(plan.steps))
    given = {"x": np.arange(5, dtype=np.int32)}
    assert not _is_caught(function, plan, given)
    planted = replace(kernel, body=tuple(_in_lanes(s) for s in kernel.body))
    with pytest.raises(machine.Fault, match="race on y"):
        machine.run(function, replace(plan, steps=(k.Launch(planted),)), given)


def _in_lanes(stmt: k.Stmt) -> k.Stmt:
    match stmt:
        case k.For() if any(isinstance(s, k.For) for s in stmt.body):
            return replace(stmt, body=tuple(_in_lanes(s) for s in stmt.body), kind="serial")
        case k.For():
            return replace(stmt, kind="simd" if stmt.sym.name == "j" else stmt.kind)
        case k.If():
            return replace(stmt, then=tuple(map(_in_lanes, stmt.then)), orelse=tuple(map(_in_lanes, stmt.orelse)))
        case _:
            return stmt
