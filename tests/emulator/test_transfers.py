"""Vectors and asynchronous copies: right kernels give NumPy's results under every schedule, planted faults are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from tests.backends.transfers import CASES, Case, moved, moving, stages

from texpr.backends.cuda import print_kernels
from texpr.emulator import LOCKSTEP, Counts, Emulated, Fault, Report
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.value.types import F32
from texpr.support.record import Record, replace

SEEDS = (None, LOCKSTEP, *range(8))
INCLUDE, SOURCE = '#include "texpr_device.h"\n', 'TX_SOURCE("<plan>")\n'

OWN = """\
plan own
    param x: f32[128] align 16 role inout
    result z: f32[128] align 16
{
    launch own_0
}

kernel own_0
    buffer x: f32[128] align 16 role inout
    buffer z: f32[128] align 16 role result
    writes x, z
    axis block.x t < 32
    array shared s: f32[32, 4]
{
    copy s[t, 0] = x[4 * t] count 4
    commit
    wait 0 covers RAW s
    vector a0, a1, a2, a3 = s[t, 0]
    vector x[4 * t] = a3, a2, a1, a0
    vector z[4 * t] = a0, a1, a2, a3
}
"""
"""Each thread reads what it copied itself, and writes where it copied from."""


def _own() -> Case:
    def args() -> list[object]:
        return [np.arange(128, dtype=np.float32), np.zeros(128, np.float32)]

    return Case(OWN, 1, 32, args, lambda args: np.arange(128, dtype=np.float32))


RIGHT = {**CASES, "own": _own(), "empty": stages(0)}
CASE = {"stages": stages(), "own": _own(), "moving": moved(F32, 4), "copying": moved(F32, 4, True)}


class Planted(Record, dict=True):
    """`old` becomes `new` in a case: a report has this fault and buffer, and the lines that begin so."""

    name: str
    case: str
    old: str
    new: str
    fault: Fault
    buffer: str
    lines: tuple[str, ...]

    @property
    def kernel(self) -> str:
        return f"{self.name}_0"

    @property
    def text(self) -> str:
        case = CASE[self.case]
        assert case.text.count(self.old) == 1, self.name
        return case.text.replace(self.old, self.new).replace(case.kernel, self.kernel)

    def names(self, report: Report) -> bool:
        said = self.text.splitlines()
        at = tuple(said[line - 1].strip() if line else "" for line in report.lines)
        fits = len(at) == len(self.lines) and all(map(str.startswith, at, self.lines))
        return fits and (report.fault, report.buffer, report.kernel) == (self.fault, self.buffer, self.kernel)


RACE, UNFINISHED, ABANDONED, MISALIGNED = Fault.RACE, Fault.UNFINISHED_COPY, Fault.ABANDONED_COPY, Fault.MISALIGNED
WAIT, COMMIT = "        wait 1 covers RAW stage\n", "        commit\n"
MEET, AGAIN = "        barrier block covers RAW stage\n", "        barrier block covers WAR stage carried i\n"
FIRST, NEXT, READ = "copy stage[0", "copy stage[(i + 1)", "vector v0"
OWN_COPY = "copy s[t, 0]"

PLANTED = (
    Planted("no_wait", "stages", WAIT, "", UNFINISHED, "stage", (FIRST, READ)),
    Planted("loose", "stages", "wait 1 ", "wait 2 ", UNFINISHED, "stage", (FIRST, READ)),
    Planted("no_commit", "stages", COMMIT, "", UNFINISHED, "stage", (FIRST, READ)),
    Planted("no_first_commit", "stages", "    commit\n    let", "    let", UNFINISHED, "stage", (FIRST, READ)),
    Planted("no_meeting", "stages", MEET, "", RACE, "stage", (FIRST, READ)),
    Planted("meeting_first", "stages", WAIT + MEET, MEET + WAIT, RACE, "stage", (FIRST, READ)),
    Planted("no_second_meeting", "stages", AGAIN, "", RACE, "stage", (READ, NEXT)),
    Planted("one_stage", "stages", "stage[(i + 1) % 2", "stage[i % 2", UNFINISHED, "stage", (FIRST, "copy stage[i % 2")),
    Planted("no_last_wait", "stages", "    wait 0\n", "", ABANDONED, "stage", (NEXT,)),
    Planted("beside", "stages", "x[0, 4 * t]", "x[0, 4 * t + 2]", MISALIGNED, "x", (FIRST,)),
    Planted("beside_stage", "stages", "= stage[i % 2, 4", "= stage[i % 2, 2", MISALIGNED, "stage", (READ,)),
    Planted("beside_z", "moving", "vector z[4 * (", "vector z[3 * (", MISALIGNED, "z", ("vector z",)),
    Planted("past_z", "moving", "vector z[4 * (64", "vector z[4 * (65", Fault.OUT_OF_BOUNDS, "z", ("vector z",)),
    Planted("past_x", "copying", "= x[4 * (64", "= x[4 * (200", Fault.OUT_OF_BOUNDS, "x", ("copy tile",)),
    Planted("own_no_wait", "own", "    wait 0 covers RAW s\n", "", UNFINISHED, "s", (OWN_COPY, "vector a0")),
    Planted("own_source", "own", "    wait 0 covers RAW s\n", "", UNFINISHED, "x", (OWN_COPY, "vector x")),
    Planted("own_never", "own", "    wait 0 covers RAW s\n", "", ABANDONED, "s", (OWN_COPY,)),
    Planted("own_again", "own", "    commit\n", "    vector s[t, 0] = 0:f32, 0:f32\n    commit\n", UNFINISHED, "s",
            (OWN_COPY, "vector s")),
    Planted("other_source", "own", "vector x[4 * t]", "vector x[124 - 4 * t]", RACE, "x", (OWN_COPY, "vector x")),
    Planted("unwritten", "moving", "tile[t, 0] = a0, a1, a2, a3", "tile[t, 0] = a0, a1", Fault.UNINITIALISED, "tile",
            ("vector b0",)),
)  # fmt: skip


def together(texts: Iterable[str]) -> str:
    """One `.cu` of many plans."""
    return INCLUDE + SOURCE + "".join(texts).replace(INCLUDE, "").replace(SOURCE, "")


def text_of(name: str, case: Case) -> str:
    return print_kernels(case.plan).replace(case.kernel, name)


EVERY = together(text_of(name, case) for name, case in RIGHT.items())


@pytest.mark.parametrize("name", RIGHT)
def test_right_under_every_schedule(emulate: Callable[..., Emulated], name: str) -> None:
    case, emulated = RIGHT[name], emulate(EVERY)
    for seed in SEEDS:
        args = case.args()
        assert emulated.launch(name, case.grid, case.block, args, seed=seed, unwritten=["z"]) == []
        np.testing.assert_array_equal(args[1], case.expected(args))


FAULTY = together(text_of(planted.kernel, replace(CASE[planted.case], text=planted.text)) for planted in PLANTED)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_planted_fault_is_named_under_every_schedule(emulate: Callable[..., Emulated], planted: Planted) -> None:
    case, emulated = CASE[planted.case], emulate(FAULTY)
    for seed in SEEDS:
        found = emulated.launch(planted.kernel, case.grid, case.block, case.args(), seed=seed, unwritten=["z"])
        assert any(map(planted.names, found)), (seed, [str(report) for report in found])


def test_an_unwatched_copy_lands_when_the_seed_says(emulate: Callable[..., Emulated]) -> None:
    """In order it lands when waited for, so never here; by seeds some copies land before their elements are read."""
    case, landed = CASE["own"], list[int]()
    for seed in SEEDS:
        args = case.args()
        assert emulate(FAULTY).launch("own_no_wait_0", 1, 32, args, seed=seed, detect=False, unwritten=["z"]) == []
        landed.append(int(np.count_nonzero(args[1] == case.expected(args))))
    assert landed[:2] == [0, 0] and any(0 < count < 128 for count in landed[2:])


def test_a_report_says_both_lines(emulate: Callable[..., Emulated]) -> None:
    planted = next(each for each in PLANTED if each.name == "own_source")
    found = emulate(FAULTY).launch(planted.kernel, 1, 32, CASE["own"].args(), unwritten=["z"])
    assert str(next(filter(planted.names, found))) == (
        "global x[0] in own_source_0 is touched before an asynchronous copy is waited for; "
        "thread (0, 0, 0) of block (0, 0, 0), line 15: copied from it and had not waited; "
        "thread (0, 0, 0) of block (0, 0, 0), line 18: write (128 times)"
    )


def counted(emulated: Emulated, name: str) -> Counts:
    case = RIGHT[name]
    emulated.clear_counts()
    assert emulated.launch(name, case.grid, case.block, case.args(), count=True) == []
    return emulated.counts()[name]


def test_a_vector_is_one_request(emulate: Callable[..., Emulated]) -> None:
    """Four blocks of two warps: each lane one load and one store, in global and in shared memory."""
    for name, width in (("moving_f32_4", 16), ("moving_i32_2", 8), ("moving_f16_2", 4), ("moving_u8_16", 16)):
        counts = counted(emulate(EVERY), name)
        assert (counts.global_loads, counts.global_stores, counts.shared_loads, counts.shared_stores) == (256,) * 4
        assert (counts.global_load_requests, counts.global_load_sectors) == (8, 8 * width)
        assert (counts.global_store_requests, counts.global_store_lines) == (8, 2 * width)
        assert (counts.shared_requests, counts.shared_wavefronts, counts.bank_conflicts) == (16, 4 * width, 0)


def test_phases_of_wide_accesses(emulate: Callable[..., Emulated]) -> None:
    """Eight lanes 32 bytes apart meet in half of the banks; eight that are 16 bytes apart use each bank once."""
    text = moving(F32, 4).replace("tile: f32[64, 4]", "tile: f32[64, 8]").replace("moving_f32_4", "apart_0")
    emulated, args = emulate(print_kernels(parse_plan(text))), RIGHT["moving_f32_4"].args()
    emulated.clear_counts()
    assert emulated.launch("apart_0", 4, 64, args, count=True) == []
    counts = emulated.counts()["apart_0"]
    assert (counts.shared_requests, counts.shared_wavefronts, counts.bank_conflicts) == (16, 16 * 8, 16 * 4)


def test_copies_are_counted(emulate: Callable[..., Emulated]) -> None:
    """Half of the blocks read nothing, but write zeros."""
    counts = counted(emulate(EVERY), "copying_f32_4")
    assert (counts.async_copies, counts.global_loads, counts.shared_stores) == (256, 128, 256)
    assert (counts.global_load_requests, counts.global_load_sectors, counts.bank_conflicts) == (4, 64, 0)
