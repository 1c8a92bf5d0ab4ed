"""Loops of the host in one launch: which ones, results in every order, bugs planted in the text, what the launcher chooses."""

from __future__ import annotations

import re
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import results, run_plan
from tests.schedule.laid import Laid, integers, laid, refusal

import texpr
from texpr.backends.cuda import headers
from texpr.driver import lower
from texpr.emulator import LOCKSTEP
from texpr.emulator.counts import parse_counts
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.kernel import verify as kernel_verify
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.together import together, why_apart
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import replace
from texpr.toolchain import Toolchain, this_machine

SEEDS = (None, LOCKSTEP, *range(5))

SWEEPS = """fn sweeps(A: i32[h, w]): i32[h, w] {
    new now: i32[h, w]
    new next: i32[h, w]
    par h |i| { par w |j| { now[i, j] = A[i, j]  next[i, j] = A[i, j] } }
    seq 3 |t| {
        par h - 2 |i| { par w - 2 |j| { next[i + 1, j + 1] = now[i, j + 1] + now[i + 2, j + 1] - now[i + 1, j] } }
        par h - 2 |i| { par w - 2 |j| { now[i + 1, j + 1] = next[i, j + 1] - next[i + 2, j + 1] + next[i + 1, j + 2] } }
    }
    return now
}"""

POWERS = """fn powers(A: i32[n, 3], inout x: i32[n]): i32 where n >= 3 {
    new y: i32[n]
    new s: i32 = 0
    seq 3 |t| {
        par n |i| {
            y[i] = 0
            seq 3 |j| { y[i] += A[i, j] * x[j] }
        }
        s = 0
        par n |i| reduce(s) { s += y[i] }
        par n |i| { x[i] = y[i] - s }
    }
    return s
}"""

SHRINKING = """fn shrinking(inout A: i32[n, n]) {
    seq n |k| {
        par n - k - 1 |i| { A[k + 1 + i, k] = A[k + 1 + i, k] + A[k, k] }
        par n - k - 1 |i| { par n - k - 1 |j| { A[k + 1 + i, k + 1 + j] -= A[k + 1 + i, k] * A[k, k + 1 + j] } }
    }
}"""

NESTED = """fn nested(inout x: i32[n], m: i32[1]) where n >= 1 {
    new y: i32[n]
    seq 3 |s| {
        seq s + 1 |t| {
            par n |i| { y[i] = x[n - 1 - i] + s }
            if t > 0 and n > 2 { par n |i| { x[i] = y[i] - t } }
        }
        par n |i| { x[i] = x[i] + y[n - 1 - i] * m[0] }
    }
}"""


def numbers(*shape: int, seed: int = 0) -> NDArray[Any]:
    return integers(*shape, seed=seed).astype(np.int32)


def arrays(name: str, n: int) -> dict[str, NDArray[Any]]:
    match name:
        case "sweeps":
            return {"A": numbers(n, 2 * n + 3)}
        case "powers":
            return {"A": numbers(n, 3) % 3, "x": numbers(n, seed=1)}
        case "shrinking":
            return {"A": numbers(n, n) % 3}
        case "mixed":
            return {"x": numbers(n, 64)}
        case _:
            return {"x": numbers(n), "m": numbers(1)}


MIXED = """fn mixed(inout x: i32[n, 64]) where n >= 1 {
    new t: i32[64]
    new c: i32 = 0
    seq 3 |s| {
        par n |i| 'rows { par 64 |j| { x[i, j] += c } }
        par 64 |p| 'one { t[p] = x[0, 63 - p] }
        c += t[5]
        par n |i| 'all { par 64 |j| { x[i, j] += t[j] } }
    }
}"""

PROGRAMS = {"sweeps": SWEEPS, "powers": POWERS, "shrinking": SHRINKING, "nested": NESTED, "mixed": MIXED}


def made(name: str) -> Laid:
    return laid(PROGRAMS[name])


def fault(
    one: Laid, given: dict[str, NDArray[Any]], text: str | None = None, seeds: tuple[int | None, ...] = SEEDS
) -> str | None:
    want = interpret(one.original, given, {})
    for seed in seeds:
        ran = run_plan(one.function, one.plan, given, {}, seed=seed, text=text, together=True)
        if ran.reports:
            return ran.reports[0].fault.value
        got = results(one.function, ran)
        if any(not np.array_equal(got[name], want[name]) for name in want):
            return "wrong"
    return None


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_launch_does_what_many_do(name: str) -> None:
    one = made(name)
    assert [loop.together is not None for loop in one.plan.steps if isinstance(loop, k.HostLoop)] == [True]
    for n in (3 if name == "powers" else 1, 4, 5, 40):
        assert fault(one, arrays(name, n)) is None, n


@pytest.mark.parametrize("name", ("sweeps", "powers", "shrinking", "nested"))
def test_every_meeting_of_all_blocks_is_needed(name: str) -> None:
    """Without one of them the emulator finds a race: in these programs each step depends on the one before."""
    one, places = made(name), [found.start() for found in re.finditer(r"tx_grid_sync\(meeting\);", made(name).text)]
    given = arrays(name, {"powers": 9000, "nested": 300}.get(name, 40))
    for place in places:
        text = one.text[:place] + "/* none */" + one.text[place + len("tx_grid_sync(meeting);") :]
        assert fault(one, given, text, tuple(range(12))) is not None, text[place - 200 : place]


def test_the_form_is_printed_and_read_back() -> None:
    for name in PROGRAMS:
        plan = made(name).plan
        again = parse_plan(plan_text(plan))
        assert plan_text(parse_plan(plan_text(again))) == plan_text(again)
        assert [str(loop.together) for loop in together(again.steps)] == [str(loop.together) for loop in together(plan.steps)]
        assert "together" in plan_text(plan)


def test_what_cannot_be_one_launch_is_many() -> None:
    clustered = laid(
        "fn f(inout x: i32[n, 64]) { seq 4 |t| { par n |i| { par 64 |j| { x[i, j] += 1 } } } }",
        "bind(i, grid.x)  bind(j, block.x)  cluster(i, 2)",
    )
    (loop,) = clustered.plan.steps
    assert isinstance(loop, k.HostLoop) and loop.together is None
    assert why_apart(loop) == "blocks of a step are in clusters"


def test_shapes_of_blocks_must_lie_in_each_other() -> None:
    (loop,) = together(made("mixed").plan.steps)
    assert len({step.threads for step in k.kernels(loop.steps)}) > 1 and why_apart(loop) is None
    steps = tuple(k.Launch(replace(step, axes=tuple(map(turned, step.axes)))) for step in k.kernels(loop.steps))
    assert "shapes that do not lie in each other" in (why_apart(replace(loop, steps=steps)) or "")


def turned(axis: k.Axis) -> k.Axis:
    return replace(axis, dim="y") if axis.level is k.Level.BLOCK else axis


def test_a_schedule_says_so_or_never() -> None:
    assert "_together" not in laid(SHRINKING, "together(k, off)").text
    assert "_together" in laid(SHRINKING, "together(k)").text
    assert "`k` is no loop of the host: there is no `par` in it" in refusal(
        "fn f(inout x: i32[n]) { seq n |k| { x[0] += x[k] } }", "together(k)"
    )
    assert "it is inside of a `par`" in refusal(
        "fn f(inout x: i32[m, n]) { par m |b| { seq 3 |k| { par n |i| { x[b, i] += 1 } } } }", "together(k)"
    )
    assert "it is a `par`" in refusal("fn f(inout x: i32[n]) { par n |i| { x[i] += 1 } }", "together(i)")
    assert "cpu launches nothing" in refusal(SHRINKING, "together(k)", "cpu")
    told = refusal(
        "fn f(inout x: i32[n, 64]) { seq 4 |t| { par n |i| { par 64 |j| { x[i, j] += 1 } } } }",
        "bind(i, grid.x)  bind(j, block.x)  cluster(i, 2)  together(t)",
    )
    assert "E0918" in told and "the steps of `t` cannot be one launch: blocks of a step are in clusters" in told


def test_a_pragma_is_for_gpus_alone() -> None:
    text = SHRINKING.replace("|k| {", "|k| #together(off) {", 1)
    for target in ("cpu", "sm_90a"):
        assert "together" not in lower(parse(text).functions[0], target).source


def test_rules_of_the_form() -> None:
    plan = made("shrinking").plan
    (loop,) = together(plan.steps)
    with pytest.raises(CompilerBug, match="blocks cannot meet in meeting"):
        kernel_verify.verify(replace(plan, workspace=()))
    with pytest.raises(CompilerBug, match="two kernels are called shrinking_A"):
        kernel_verify.verify(named(plan, loop, "shrinking_A"))


def named(plan: k.Plan, loop: k.HostLoop, name: str) -> k.Plan:
    assert loop.together is not None
    return replace(plan, steps=(replace(loop, together=replace(loop.together, name=name)),))


@pytest.mark.parametrize(
    ("name", "n", "fit"),
    [("sweeps", 1, False), ("sweeps", 10, True), ("sweeps", 200, False), ("powers", 300, True), ("powers", 9000, False),
     ("shrinking", 6, True), ("shrinking", 60, False), ("nested", 700, True), ("nested", 5000, False)],
)  # fmt: skip
def test_the_launcher_chooses(name: str, n: int, fit: bool) -> None:
    """The emulated device holds eight blocks at once: with more in a step each step is a launch; with none, nothing is."""
    function = parse(PROGRAMS[name]).functions[0]
    kernel = texpr.compile(function, "sm_90a", schedule="none", emulate=True)
    emulator, given = kernel.emulator, arrays(name, n)
    assert emulator is not None
    want = interpret(function, given, {})
    emulator.library.tx_emu_clear_counts()
    emulator.set("count", 1)
    try:
        passed = {each: array.copy() for each, array in given.items()}
        made = cast(Any, kernel)(**passed)
        launched = {each for each, count in parse_counts(emulator.text("tx_emu_counts")).items() if count.launches}
    finally:
        emulator.set("count", 0)
        emulator.library.tx_emu_clear_counts()
    for each, array in want.items():
        np.testing.assert_array_equal(passed.get(each, made), array)
    assert any(each.endswith("_together") for each in launched) == fit


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_nvcc_reads_what_others_write_anew(target: str) -> None:
    """What another step writes is not read as if it never changed (`ld.global.nc`): the other blocks' writes are to be seen."""
    one = made("sweeps")
    binary = Toolchain(this_machine()).device(one.text, headers(), target)
    ptx = binary.ptx.decode()
    whole = ptx[ptx.index(".entry sweeps_t_together") :]
    alone = ptx[ptx.index(".entry sweeps_next") :].split(".entry")[1]
    assert "ld.global.nc" not in whole.split(".entry")[1] and "ld.acquire.gpu" in whole
    assert "ld.global.nc" in alone, "and a launch of its own may"
    (usage,) = (each for each in binary.kernels if each.kernel == "sweeps_t_together")
    assert usage.barriers == 1
