"""Copies of tiles: right kernels give NumPy's results under every schedule, planted faults are named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.backends.tiles import TILED, Tiled
from tests.emulator.tensors import launch

from texpr.backends.cuda import print_kernels
from texpr.emulator import LOCKSTEP, Emulated, Fault, Report
from texpr.support.record import Record, replace

SEEDS = (None, LOCKSTEP, *range(8))
INCLUDE, SOURCE = '#include "texpr_device.h"\n', 'TX_SOURCE("<plan>")\n'


def together(texts: list[str]) -> str:
    """One `.cu` of many plans."""
    return INCLUDE + SOURCE + "".join(texts).replace(INCLUDE, "").replace(SOURCE, "")


EVERY = together([print_kernels(case.plan) for case in TILED.values()])


@pytest.mark.parametrize("name", TILED)
def test_right_under_every_schedule(emulate: Callable[..., Emulated], name: str) -> None:
    case, emulated = TILED[name], emulate(EVERY)
    for seed in SEEDS:
        args = case.args()
        unwritten = [] if name == "reduce" else ["z"]
        assert launch(emulated, case, case.kernel, args, seed=seed, unwritten=unwritten) == []
        np.testing.assert_array_equal(args["z"], case.expected(args))


@pytest.mark.parametrize("name", TILED)
def test_right_in_plain_memory(emulate: Callable[..., Emulated], name: str) -> None:
    case, emulated = TILED[name], emulate(EVERY, checked=False)
    args = case.args()
    assert launch(emulated, case, case.kernel, args) == []
    np.testing.assert_array_equal(args["z"], case.expected(args))


class Planted(Record, dict=True):
    """`old` becomes `new` in a case: a report has one of these faults and the buffer, and says this; or the result is wrong."""

    name: str
    case: str
    old: str
    new: str
    fault: Fault | tuple[Fault, ...]
    buffer: str = ""
    says: str = ""

    @property
    def tiled(self) -> Tiled:
        case = TILED[self.case]
        assert self.old in case.text, self.name
        text = case.text.replace(self.old, self.new, 1).replace(f"{self.case}_0", f"{self.name}_0")
        return replace(case, text=text)

    def names(self, report: Report) -> bool:
        faults = (self.fault,) if isinstance(self.fault, Fault) else self.fault
        buffer = "" if report.fault is Fault.DEADLOCK else self.buffer
        return report.fault in faults and report.buffer == buffer and self.says in str(report)


UNFINISHED, ABANDONED, BAD_TENSOR, UNMADE = (
    Fault.UNFINISHED_COPY, Fault.ABANDONED_COPY, Fault.BAD_TENSOR, (Fault.BAD_BARRIER, Fault.RACE)
)  # fmt: skip
WAIT = "    mbarrier wait full[0] parity 0 covers RAW tile\n"
MAKE_FENCE, STORE_FENCE = "        fence init\n", "    fence async\n    barrier block covers RAW tile\n"
STORED = "        commit_bulk\n        wait_bulk 0 read covers WAR tile\n"
REFILL = "            mbarrier wait empty[i % 3] parity (i / 3) % 2 covers WAR stage carried i\n"

READ, ARRIVE = "        vector v0, v1, v2, v3 = stage[i % 3, 4 * t]\n", "        mbarrier arrive empty[i % 3]\n"
SUMS = "".join(f"        s{at} = (s{at} + v{at})\n" for at in range(4))
FENCE = "        fence async\n"
WAIT_OF_ALL = "        mbarrier wait full[0] parity i % 2 covers RAW tile\n"
WAIT_OF_ONE = "        if (i32(t) == 0:i32) {\n    " + WAIT_OF_ALL + "        }\n        barrier cluster relaxed\n"
SOME = "        if (i32(t) < 63:i32) {\n            fence async\n        }\n"
OVERLAP = (Fault.RACE, UNFINISHED)
"""What meets without order: which of both is said depends on whether the engine was done."""

ASTRAY = (*OVERLAP, Fault.DEADLOCK)
"""Phases are mistaken for each other: threads overtake, or wait for ever."""

PLANTED = (
    Planted("more_bytes", "load", "bytes 2048", "bytes 4096", Fault.DEADLOCK, "",
            "phase 0: 2048 of 4096 bytes and 1 of 1 arrivals"),
    Planted("less_bytes", "load", "bytes 2048", "bytes 1024", UNFINISHED, "tile"),
    Planted("no_bytes", "load", "bytes 2048", "bytes 0", UNFINISHED, "tile"),
    Planted("parity", "load", "parity 0", "parity 1", UNFINISHED, "tile"),
    Planted("no_wait", "load", WAIT, "", UNFINISHED, "tile"),
    Planted("no_wait_at_all", "load", WAIT, "    barrier block\n", UNFINISHED, "tile"),
    Planted("no_make_fence", "load", MAKE_FENCE, "", Fault.MISSING_FENCE, "full", "no fence of its maker"),
    Planted("no_make", "load", "        mbarrier init full[0] count 1\n", "", Fault.BAD_BARRIER, "full", "that was not made"),
    Planted("no_made_meeting", "load", "    barrier block\n", "", (Fault.BAD_BARRIER, Fault.RACE), "full"),
    Planted("made_again", "load", MAKE_FENCE, "        mbarrier init full[0] count 1\n" + MAKE_FENCE, Fault.BAD_BARRIER,
            "full", "again"),
    Planted("too_many_arrivals", "load", "count 1\n", "count 2\n", Fault.DEADLOCK, "", "1 of 2 arrivals"),
    Planted("all_issue", "load", "t) == 0:i32) {\n        prefetch", "t) < 2:i32) {\n        prefetch", UNFINISHED, "tile"),
    Planted("box_off", "load", "box [32, 16]", "box [32, 15]", Fault.DEADLOCK, "", "1920 of 2048 bytes"),
    Planted("box_larger", "load", "box [32, 16]", "box [32, 17]", Fault.OUT_OF_BOUNDS, "tile"),
    Planted("swapped", "load", "xm[32 * q - 4, 16 * p - 1]", "xm[16 * p - 4, 32 * q - 1]", ()),
    Planted("wrong_sizes", "load", "sizes [n, m]", "sizes [n, m + 1]", Fault.OUT_OF_BOUNDS, "x"),
    Planted("far", "load", "xm[32 * q - 4,", "xm[4294967296 + 32 * q - 4,", BAD_TENSOR, "", "a coordinate beyond 32 bits"),
    Planted("within_a_chunk", "load", "xm[32 * q - 4,", "xm[32 * q - 3,", BAD_TENSOR, "", "within 16 bytes"),
    Planted("store_before", "store", "zm[32 * q, 8 * p]", "zm[32 * q, 8 * p - 1]", BAD_TENSOR, "", "before the tensor"),
    Planted("store_within", "store", "zm[32 * q, 8 * p]", "zm[32 * q + 1, 8 * p]", BAD_TENSOR, "", "within 16 bytes"),
    Planted("less_aligned", "load", "at 128", "at 64", Fault.MISALIGNED, "tile"),
    Planted("less_aligned_swizzle", "transpose", "at 1024", "at 512", Fault.MISALIGNED, "tile"),
    Planted("wrong_swizzle", "transpose", "box [32, 32] steps [1, 1] swizzle 128", "box [32, 32] steps [1, 1]", ()),
    Planted("unswizzled", "transpose", "xor((2 * c + t / 32) / 4, t % 8, 3)", "((2 * c + t / 32) / 4)", ()),
    Planted("met_never", "met", "    barrier block covers RAW tile\n", "", UNFINISHED, "tile"),
    Planted("warps_never", "warps", "    barrier warp covers RAW tile\n", "", UNFINISHED, "tile"),
    Planted("warps_mixed", "warps", "wait full[t / 32]", "wait full[1 - t / 32]", UNFINISHED, "tile"),
    Planted("no_store_fence", "store", STORE_FENCE, "    barrier block covers RAW tile\n", Fault.MISSING_FENCE, "tile"),
    Planted("late_fence", "store", STORE_FENCE, "    barrier block covers RAW tile\n    fence async\n", Fault.MISSING_FENCE,
            "tile"),
    Planted("no_store_meeting", "store", STORE_FENCE, "    fence async\n", Fault.RACE, "tile"),
    Planted("no_read_wait", "store", "        wait_bulk 0 read covers WAR tile\n", "", UNFINISHED, "tile",
            "stored from it and had not waited"),
    Planted("loose_read_wait", "store", "wait_bulk 0 read", "wait_bulk 1 read", UNFINISHED, "tile",
            "stored from it and had not waited"),
    Planted("no_commit", "store", "        commit_bulk\n", "", UNFINISHED, "tile"),
    Planted("store_far", "store", "zm[32 * q, 8 * p]", "zm[32 * q, 2147483648]", BAD_TENSOR, "", "a coordinate beyond 32 bits"),
    Planted("store_box", "store", "box [32, 8]", "box [32, 4]", ()),
    Planted("store_twice", "store", "zm[32 * q, 8 * p]", "zm[0, 8 * p]", OVERLAP, "z"),
    Planted("reduce_no_wait", "reduce", "        wait_bulk 0\n", "", ABANDONED, "tile", "never waited"),
    Planted("reduce_as_store", "reduce", "tensor reduce add", "tensor store", OVERLAP, "z"),
    Planted("reduce_no_meeting", "reduce", "    fence async\n    barrier block covers RAW tile\n", "    fence async\n",
            Fault.RACE, "tile"),
    Planted("ring_wait", "ring", "    mbarrier wait full[i % 3] parity (i / 3) % 2 covers RAW stage\n", "", UNFINISHED,
            "stage"),
    Planted("ring_parity", "ring", "full[i % 3] parity (i / 3) % 2", "full[i % 3] parity (i / 3 + 1) % 2", UNFINISHED, "stage"),
    Planted("ring_no_empty", "ring", REFILL, "", OVERLAP, "stage"),
    Planted("ring_empty_parity", "ring", "empty[i % 3] parity (i / 3) % 2", "empty[i % 3] parity (i / 3 + 1) % 2", ASTRAY,
            "stage"),
    Planted("ring_no_arrive", "ring", "        mbarrier arrive empty[i % 3]\n", "", Fault.DEADLOCK, "", "0 of 64 arrivals"),
    Planted("ring_few_arrivals", "ring", "empty[s] count 64", "empty[s] count 63", ASTRAY, "stage"),
    Planted("ring_early_arrive", "ring", READ + SUMS + FENCE + ARRIVE, ARRIVE + READ + SUMS + FENCE, OVERLAP, "stage"),
    Planted("ring_one_more", "ring", "(i32(i + 3) < i32(c))", "(i32(i + 3) < i32(c + 1))", ABANDONED, "stage", "nobody waited"),
    Planted("ring_bytes", "ring", "            mbarrier expect full[i % 3] bytes 1024\n",
            "            mbarrier expect full[i % 3] bytes 512\n", UNFINISHED,
            "stage"),
    Planted("ring_no_fence", "ring", "        fence async\n", "", Fault.MISSING_FENCE, "stage", "no fence of the reader"),
    Planted("ring_late_fence", "ring", FENCE + ARRIVE, ARRIVE + FENCE, Fault.MISSING_FENCE, "stage", "no fence of the reader"),
    Planted("ring_early_fence", "ring", READ + SUMS + FENCE, FENCE + READ + SUMS, Fault.MISSING_FENCE, "stage"),
    Planted("ring_fence_of_some", "ring", FENCE, SOME, Fault.MISSING_FENCE, "stage", "no fence of the reader"),
    Planted("shared_no_fence", "shared", FENCE, "", Fault.MISSING_FENCE, "tile", "no fence of the reader"),
    Planted("bulk_no_wait", "bulk", WAIT, "", UNFINISHED, "tile"),
    Planted("bulk_no_fence", "bulk", STORE_FENCE, "    barrier block covers RAW tile\n", Fault.MISSING_FENCE, "tile"),
    Planted("bulk_beside", "bulk", "x[64 * p]", "x[64 * p + 1]", Fault.MISALIGNED, "x"),
    Planted("shared_made", "shared", "    barrier cluster\n    let", "    barrier block\n    let", UNMADE,
            "full"),
    Planted("shared_reuse", "shared", "        barrier cluster covers WAR tile carried i\n", "", OVERLAP, "tile"),
    Planted("shared_reuse_by_block", "shared", "        barrier cluster covers", "        barrier block covers", OVERLAP,
            "tile"),
    Planted("shared_reuse_relaxed", "shared", "        barrier cluster covers", "        barrier cluster relaxed covers",
            OVERLAP, "tile"),
    Planted("shared_wait_of_one", "shared", WAIT_OF_ALL, WAIT_OF_ONE, UNFINISHED, "tile"),
    Planted("shared_mask", "shared", "to [0, 1]", "to [0]", Fault.DEADLOCK, "", "0 of 4096 bytes"),
    Planted("shared_mask_beyond", "shared", "to [0, 1] from 0", "to [0, 1] from u", BAD_TENSOR, "", "its cluster has not"),
    Planted("shared_expects_its_share", "shared", "bytes 4096", "bytes 2048", UNFINISHED, "tile"),
    Planted("shared_place", "shared", "load tile[16 * u, 0]", "load tile[16 - 16 * u, 0]", ()),
    Planted("shared_rows", "shared", "32 * p + 16 * u]", "32 * p]", ()),
    Planted("shared_ends_early", "shared", "0..(n + 31) / 32", "0..(n + 31) / 32 - u", (Fault.EARLY_EXIT, Fault.DEADLOCK),
            "tile"),
    Planted("led_ends_early", "led", "0..(n + 31) / 32", "0..(n + 31) / 32 - u", (Fault.EARLY_EXIT, ABANDONED), "tile"),
    Planted("led_wait", "led", "        mbarrier wait full[0] parity i % 2 covers RAW tile\n", "", UNFINISHED, "tile"),
    Planted("rows_load_wrong", "rows", "rows I[p, 0], I[p, 1]", "rows I[p, 1], I[p, 0]", ()),
    Planted("rows_store_wrong", "rows", "rows J[p, 0], J[p, 1]", "rows J[p, 1], J[p, 0]", ()),
    Planted("rows_met", "rows", "rows J[p, 0], J[p, 1]", "rows J[p, 0], J[p, 0]", BAD_TENSOR, "", "two rows of a tile to one"),
    Planted("rows_of_others", "rows", "rows J[p, 0]", "rows J[0, 0]", OVERLAP, "z"),
    Planted("rows_unswizzled", "rows", "xor(t / 4, r, 3)", "(t / 4)", ()),
    Planted("rows_bytes", "rows", "bytes 512", "bytes 128", UNFINISHED, "tile"),
    Planted("rows_box", "rows", "box [32, 1] steps [1, 1] swizzle", "box [32, 2] steps [1, 1] swizzle", BAD_TENSOR, "",
            "a map that is not of rows"),
    Planted("rows_no_fence", "rows", "    fence async\n", "", Fault.MISSING_FENCE, "made"),
    Planted("rows_no_wait", "rows", "        wait_bulk 0\n", "", ABANDONED, "made", "never waited"),
    Planted("bulk_past", "bulk", "z[64 * p]", "z[64 * p + 64]", Fault.OUT_OF_BOUNDS, "z"),
)  # fmt: skip


FAULTY = together([print_kernels(planted.tiled.plan) for planted in PLANTED])


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_planted_fault_is_named_under_every_schedule(emulate: Callable[..., Emulated], planted: Planted) -> None:
    case, emulated = planted.tiled, emulate(FAULTY)
    for seed in SEEDS:
        args = case.args()
        found = launch(emulated, case, case.kernel, args, seed=seed)
        if planted.fault:
            assert any(map(planted.names, found)), (seed, [str(report) for report in found])
        else:
            assert found or not np.array_equal(args["z"], case.expected(args)), seed


SAID = {
    "no_store_fence": "shared tile[0] in no_store_fence_0 meets an engine without a fence; thread (0, 0, 0) "
    "of block (0, 0, 0), line 27: write; thread (0, 0, 0) of block (0, 0, 0), line 31: stored from it, and no fence of the "
    "writer is between (836 times)",
    "no_make": "shared full[0] in no_make_0 is not used as a barrier must be; thread (0, 0, 0) of block (0, 0, 0), line 29: "
    "arrived at a barrier that was not made (9 times)",
    "far": "a copy of a tile in far_0 is none that the hardware makes; thread (0, 0, 0) of block (0, 0, 0), line 31: gave a "
    "coordinate beyond 32 bits",
}


@pytest.mark.parametrize("name", SAID)
def test_reports_say_who_and_where(emulate: Callable[..., Emulated], name: str) -> None:
    case = next(planted for planted in PLANTED if planted.name == name).tiled
    found = launch(emulate(FAULTY), case, case.kernel, case.args())
    assert SAID[name] in map(str, found), [str(report) for report in found]


def test_counts_of_tiles(emulate: Callable[..., Emulated]) -> None:
    """Nine boxes of 2 KiB, zeros included; threads read shared memory and write the result."""
    case, emulated = TILED["load"], emulate(EVERY)
    emulated.clear_counts()
    assert launch(emulated, case, case.kernel, case.args(), count=True) == []
    counts = emulated.counts()["load_0"]
    assert (counts.tile_loads, counts.tile_stores, counts.tile_bytes) == (9, 0, 9 * 2048)
    assert (counts.global_loads, counts.shared_loads, counts.global_stores) == (0, 9 * 512, 9 * 512)


def test_a_swizzle_saves_conflicts(emulate: Callable[..., Emulated]) -> None:
    """Columns of 32 words would meet in one bank; permuted chunks of 16 bytes meet in eight, of four words each."""
    case, emulated = TILED["transpose"], emulate(EVERY)
    emulated.clear_counts()
    args = {**case.args(), "x": np.ones((64, 64), np.float32), "z": np.zeros((64, 64), np.float32), "m": 64, "n": 64}
    assert launch(emulated, case, case.kernel, args, count=True) == []
    counts = emulated.counts()["transpose_0"]
    assert counts.shared_wavefronts == 4 * counts.shared_requests and counts.tile_loads == 4
