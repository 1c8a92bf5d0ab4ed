"""Shared arrays in the same bytes at different times: what is right passes in every order, what is not is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from texpr.backends.cuda import print_kernels
from texpr.emulator import LOCKSTEP, Emulated, Fault, Report
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.verify import verify

SCHEDULES = (None, LOCKSTEP, *range(6))

PARTS = {
    "fill": "narrow[t] = x[t]",
    "start": "copy narrow[t] = x[t] count 1 commit wait 0",
    "first": "barrier block",
    "take": "let kept: f32 = narrow[63 - t]",
    "second": "barrier block",
    "wide": "if (i32(t) < i32(32)) { wide[t] = (x[2 * t] as f64) }",
    "third": "barrier block",
    "give": "z[t] = (kept + (wide[31 - t / 2] as f32))",
}


def text(name: str, *leave: str, where: int = 128, after: str = "", copied: bool = False) -> str:
    """A kernel in whose `narrow`, 256 bytes, and `wide`, as many from byte `where` on, two things are turned around."""
    gone = {*leave, "fill" if copied else "start"}
    body = " ".join(part for of, part in PARTS.items() if of not in gone)
    return f"""
    plan {name} param x: f32[64] result z: f32[64] {{ launch {name} }}
    kernel {name}
        buffer x: f32[64] buffer z: f32[64] role result writes z axis block.x t < 64
        array shared narrow: f32[64] from 0 array shared wide: f64[32] from {where} array shared apart: f32[4] from 512
    {{ {body} {after} }}
    """


def run(
    emulate: Callable[..., Emulated], name: str, source: str, seed: int | None, checked: bool = True
) -> tuple[Sequence[Report], np.ndarray]:
    plan = parse_plan(source)
    verify(plan)
    x, z = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    reports = emulate(print_kernels(plan), checked=checked).launch(name, 1, 64, [x, z], seed=seed, unwritten=("z",))
    return reports, z


EXPECTED = np.array([63 - t + 2 * (31 - t // 2) for t in range(64)], np.float32)


@pytest.mark.parametrize("where", [0, 128, 256])
@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("checked", [False, True])
def test_right_in_every_order(emulate: Callable[..., Emulated], where: int, copied: bool, checked: bool) -> None:
    name = f"right_{where}_{copied:d}"
    for seed in SCHEDULES:
        reports, z = run(emulate, name, text(name, where=where, copied=copied), seed, checked)
        assert reports == []
        np.testing.assert_array_equal(z, EXPECTED)


@pytest.mark.parametrize("seed", SCHEDULES)
def test_a_barrier_between_two_arrays_is_needed_where_they_meet(emulate: Callable[..., Emulated], seed: int | None) -> None:
    reports, _ = run(emulate, "missing", text("missing", "second"), seed)
    assert {report.fault for report in reports} & {Fault.RACE, Fault.UNINITIALISED}
    reports, z = run(emulate, "apart", text("apart", "second", where=256), seed)
    assert reports == []
    np.testing.assert_array_equal(z, EXPECTED)


@pytest.mark.parametrize("seed", SCHEDULES)
def test_what_was_written_over_is_gone(emulate: Callable[..., Emulated], seed: int | None) -> None:
    source = text("late", after="barrier block if (i32(t) == i32(0)) { apart[0] = narrow[40] }")
    reports, _ = run(emulate, "late", source, seed)
    assert [(report.fault, report.buffer) for report in reports] == [(Fault.UNINITIALISED, "narrow")]
    below = text("below", after="barrier block if (i32(t) == i32(0)) { apart[0] = narrow[31] }")
    assert run(emulate, "below", below, seed)[0] == []


@pytest.mark.parametrize("seed", SCHEDULES)
def test_a_copy_that_is_on_its_way_holds_its_bytes(emulate: Callable[..., Emulated], seed: int | None) -> None:
    source = text("flying", "take", "second", "give", copied=True, after="wait 0").replace("wait 0", "", 1)
    reports, _ = run(emulate, "flying", source, seed)
    assert Fault.UNFINISHED_COPY in {report.fault for report in reports}


def test_the_text_names_the_arena() -> None:
    printed = print_kernels(parse_plan(text("shown")))
    lines = [line.strip().split(";")[0] for line in printed.splitlines() if "TX_SHARED" in line]
    assert lines == [
        "TX_SHARED_ARENA(528)",
        "TX_SHARED_AT(float, narrow, 64, 16, 0)",
        "TX_SHARED_AT(double, wide, 32, 16, 128)",
        "TX_SHARED_AT(float, apart, 4, 16, 512)",
    ]
