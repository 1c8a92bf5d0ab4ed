"""Faults planted in right kernels: each is found, with both lines, whatever the schedule.

A planted race gives a wrong answer under some seed, though most give the right one in order, or in lockstep.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from texpr.emulator import LOCKSTEP, Emulated, Fault, Report
from texpr.support.record import Record

from .kernels import CASES, CLUSTER, HEAD, HISTOGRAM, NAMED, RANK, SAXPY, SHIFT, STAGES, SUM, TRANSPOSE, WARP, Case, result

SEEDS = range(8)


class Planted(Record, dict=True):
    """`old` becomes `new` in `case`: a report has this fault, buffer and lines. `right_in`: where values miss it."""

    name: str
    case: Case
    old: str
    new: str
    fault: Fault
    buffer: str
    lines: tuple[int, ...]
    right_in: tuple[int | None, ...] = ()

    @property
    def kernel(self) -> str:
        return f"{self.name}_0"

    @property
    def source(self) -> str:
        assert self.case.text.count(self.old) == 1, self.name
        return self.case.source.replace(self.old, self.new).replace(self.case.name, self.kernel)


def barrier(line: int, call: str = "__syncthreads()", indent: int = 4) -> str:
    return f"TX_AT({line})\n{' ' * indent}{call};\n"


RACE, BOUNDS, UNWRITTEN = Fault.RACE, Fault.OUT_OF_BOUNDS, Fault.UNINITIALISED

PLANTED = (
    Planted("guard", SAXPY, "i < n", "i <= n", BOUNDS, "x", (3,)),
    Planted("guard_out", SAXPY, "if (i < n)", "if (i < n + 1)", BOUNDS, "out", (3,)),
    Planted("below", SAXPY, "out[i] =", "out[i - 1] =", BOUNDS, "out", (3,)),
    Planted("blocks", RANK, "= x[i]", "= i < 64 ? x[i] : out[i - 64] + 1", RACE, "out", (3, 3), (None, LOCKSTEP)),
    Planted("raw", SUM, barrier(6), "", RACE, "part", (5, 7), (None, LOCKSTEP)),
    Planted("tile_raw", TRANSPOSE, barrier(4), "", RACE, "tile", (3, 5)),
    Planted("unguarded", TRANSPOSE, "r < rows && c", "r < rows + 1 && c", UNWRITTEN, "tile", (5,)),
    Planted("init", HISTOGRAM, barrier(4), "", RACE, "count", (3, 5), (LOCKSTEP,)),
    Planted("total", HISTOGRAM, barrier(6), "", RACE, "count", (5, 7), (LOCKSTEP,)),
    Planted("no_init", HISTOGRAM, "count[t] = 0", "(void)count[t]", UNWRITTEN, "count", (5,)),
    Planted(
        "plain",
        HISTOGRAM,
        "atomicAdd(&out[t], (int)count[t])",
        "out[t] += (int)count[t]",
        RACE,
        "out",
        (7, 7),
        (None, LOCKSTEP),
    ),
    Planted("half", HISTOGRAM, "atomicAdd(&count[bin[i]], 1)", "count[bin[i]] += 1", RACE, "count", (5, 5), (None,)),
    Planted("war", SHIFT, barrier(7, indent=8), "", RACE, "cell", (6, 8), (LOCKSTEP,)),
    Planted("carried_raw", SHIFT, barrier(9, indent=8), "", RACE, "cell", (8, 6), (LOCKSTEP,)),
    Planted("carried_war", STAGES, barrier(8, indent=8), "", RACE, "stage", (7, 5), (LOCKSTEP,)),
    Planted("stage_raw", STAGES, barrier(6, indent=8), "", RACE, "stage", (5, 7), (None, LOCKSTEP)),
    Planted("no_syncwarp", WARP, barrier(5, "__syncwarp(tx_group(8))"), "", RACE, "slot", (4, 6), (None, LOCKSTEP)),
    Planted("narrow", WARP, "__syncwarp(tx_group(8))", "__syncwarp(tx_group(4))", RACE, "slot", (4, 6), (None, LOCKSTEP)),
    Planted("no_named", NAMED, barrier(5, "tx_bar_sync(1 + half, 64)"), "", RACE, "slot", (4, 6), (None, LOCKSTEP)),
    Planted("weak", NAMED, "tx_bar_sync(1 + half, 64)", "__syncwarp()", RACE, "slot", (4, 6), (None, LOCKSTEP)),
    Planted("no_cluster", CLUSTER, barrier(5, "tx_cluster_sync()"), "", RACE, "mine", (4, 6), (LOCKSTEP,)),
    Planted("ends_early", CLUSTER, barrier(7, "tx_cluster_sync()"), "", Fault.EARLY_EXIT, "mine", (6, 6), (LOCKSTEP,)),
    Planted("block_only", CLUSTER, barrier(5, "tx_cluster_sync()"), barrier(5), RACE, "mine", (4, 6), (LOCKSTEP,)),
)

TEXT = HEAD + "".join(each.source for each in PLANTED)


def launch(emulated: Emulated, planted: Planted, seed: int | None, detect: bool = True) -> tuple[list[Report], bool]:
    """What is found, and whether the values are right."""
    args = planted.case.args()
    block, unwritten = planted.case.block, planted.case.unwritten
    cluster = (2, 1, 1) if planted.case is CLUSTER else None
    found = emulated.launch(
        planted.kernel, planted.case.grid, block, args, seed=seed, detect=detect, unwritten=unwritten, cluster=cluster
    )
    return found, np.array_equal(result(args), planted.case.expected(args))


def names(planted: Planted, report: Report) -> bool:
    lines = {planted.lines, planted.lines[::-1]}
    same = (report.fault, report.buffer, report.kernel) == (planted.fault, planted.buffer, planted.kernel)
    return same and report.lines in lines and report.source == "planted.te"


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_found_under_every_schedule(emulate: Callable[..., Emulated], planted: Planted) -> None:
    for seed in (None, LOCKSTEP, *SEEDS):
        found, _ = launch(emulate(TEXT), planted, seed)
        assert any(names(planted, report) for report in found), (seed, [str(report) for report in found])


@pytest.mark.parametrize("planted", [p for p in PLANTED if p.fault is RACE], ids=lambda planted: planted.name)
def test_race_missed_by_values_in_order_and_shown_by_a_seed(emulate: Callable[..., Emulated], planted: Planted) -> None:
    emulated = emulate(TEXT)
    assert planted.right_in == tuple(seed for seed in (None, LOCKSTEP) if launch(emulated, planted, seed, detect=False)[1])
    assert any(not launch(emulated, planted, seed, detect=False)[1] for seed in SEEDS)


def test_both_threads_are_named(emulate: Callable[..., Emulated]) -> None:
    planted = next(each for each in PLANTED if each.name == "carried_war")
    found, _ = launch(emulate(TEXT), planted, None)
    race = next(report for report in found if names(planted, report))
    assert race.second is not None
    assert {race.first.action, race.second.action} == {"read", "write"}
    assert race.first.block == race.second.block == (0, 0, 0)
    assert race.first.thread != race.second.thread
    assert (race.space, race.count) == ("shared", 64) and 0 <= race.index < 64
    assert race.times > 1, "one report for each pair of lines"


def test_only_bounds_are_watched_where_detectors_are_off(emulate: Callable[..., Emulated]) -> None:
    for planted in PLANTED:
        found, _ = launch(emulate(TEXT), planted, 0, detect=False)
        assert {report.fault for report in found} <= {BOUNDS}
        assert bool(found) == (planted.fault is BOUNDS or planted.name == "unguarded")


def test_every_right_kernel_has_a_planted_fault() -> None:
    assert {planted.case.name for planted in PLANTED} == {case.name for case in CASES}
