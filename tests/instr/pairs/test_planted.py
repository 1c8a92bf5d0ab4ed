"""Bugs put into kernels in which pairs of blocks multiply: none is proved, and what changes results is shown by the emulator.

What one block does for another one is where they are: a half that is not there yet, a slot filled again while the other block's
product reads it, a commit that one block alone sees, columns given back, or a block ended, while the other one goes on.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.instr.pairs.texts import CASES, compiled
from tests.planted import Bug, is_proved, is_shown, open_of, plain, with_bug

from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.support.record import Record


class Planted(Record):
    """`old` becomes `new` in the plan of a case. `shown`: the numbers are others then, or the emulator finds a fault."""

    old: str
    new: str
    shown: bool = True
    case: str = "late"


AFTER, BEFORE, MEET = "columns fence after\n", "columns fence before\n", "barrier cluster\n"
SOLE = "if (i32(thread) == 0:i32) {\n"
WAIT = "mbarrier wait B_s_A_s_full[((k_o + 2) % 4)] parity ((((k_o + 2) / 4) + 1) % 2)\n"
FULL = f"            if (i32(i_b_rank) == 0:i32) uniform {{\n                {WAIT}            }}\n"
TURN = f"            barrier cluster relaxed\n            {AFTER}"
LAUNCH = (
    "launch instr tcgen05_pair_m128n64k16_f32_bf16 [i_1, j_1, k] A_s[((k_o + 2) % 4), 0, 2 * k_i_o, 0] 8 descriptor "
    "(128, 16, 1024), B_s[((k_o + 2) % 4), 0, 2 * k_i_o, 0] 8 descriptor (128, 16, 1024), total[0] 64 update\n"
)
LAUNCHES = (
    f"            for k_i_o in 0..4 uniform {{\n                {SOLE}                    if (i32(i_b) < i32(((M + 127) / "
    f"128))) uniform {{\n                        {LAUNCH}                    }}\n                }}\n            }}\n"
)
COMMIT = f"            {SOLE}                columns commit total_done[(k_o % 2)] pair\n            }}\n"
LATE = (
    "            if (i64(k_o - 2) >= 1:i64) uniform {\n"
    "                mbarrier wait total_done[((k_o + 1) % 2)] parity (((k_o + 1) / 2) % 2)\n"
    "            }\n"
)
LAST = (
    "    if (i64(((K + 63) / 64)) >= 1:i64) uniform {\n"
    "        mbarrier wait total_done[((((K + 63) / 64) + 1) % 2)] parity ((((((K + 63) / 64) + 1) / 2) + 1) % 2)\n"
    "    }\n"
)
EXPECT = (
    "                if (i32(i_b_rank) == 0:i32) uniform {\n"
    "                    mbarrier expect B_s_A_s_full[(k_o % 4)] bytes 40960\n                }\n"
)
COPY_B = (
    "                tensor load B_s[(k_o % 4), 0, 0, 0] = B_map[64 * k_o, 32 * i_b_rank + 64 * j_b] arrives "
    "B_s_A_s_full[(k_o % 4)] to [0, 1] from 0 led\n"
)
COPY_A = (
    "                tensor load A_s[(k_o % 4), 0, 0, 0] = A_map[64 * k_o, 128 * i_b] arrives B_s_A_s_full[(k_o % 4)] led\n"
)
FREE = "    if (i32((thread / 32)) < i32(1)) {\n        columns free 64 pair\n    }\n"
TAKE = "    if (i32((thread / 32)) < i32(1)) {\n        columns take first_column[0] count 64 pair\n    }\n"
START = f"    {BEFORE}    {MEET}    {AFTER}"
END = f"    {BEFORE}    {MEET}    {AFTER}{FREE}"
WHOLE = "A_s: bf16[4, 128, 8, 8] at 1024"
SECOND = "if (i32(i_b_rank) == 1:i32) uniform {\n"
FIRST = "if (i32(i_b_rank) == 0:i32) uniform {\n"
STORED = "total_part[0] 32 read, total[32 * r] 32 write\n        }\n"

BUGS = {
    # both blocks have what one product reads, and know what it adds to
    "blocks do not meet between stores and products": Planted(f"    {MEET}    for k_o", "    for k_o"),
    "a block's own threads meet alone": Planted(f"    {MEET}    for k_o", "    barrier block\n    for k_o"),
    "a relaxed meeting, which shows no stores": Planted(f"    {MEET}    for k_o", "    barrier cluster relaxed\n    for k_o"),
    "nobody waits for copies": Planted(FULL, ""),
    "the second block waits for copies in place of the first": Planted(FULL, FULL.replace("== 0", "== 1")),
    "both blocks wait for copies": Planted(FULL, f"            {WAIT}"),
    "the other parity of copies": Planted("((((k_o + 2) / 4) + 1) % 2)", "(((k_o + 2) / 4) % 2)"),
    "blocks do not meet in a turn": Planted(TURN, f"            {AFTER}", False),
    "blocks meet behind a commit": Planted(
        f"{TURN}{LAUNCHES}{COMMIT}", f"            {AFTER}{LAUNCHES}{COMMIT}            barrier cluster relaxed\n", False
    ),
    "no fence behind the meeting": Planted(TURN, "            barrier cluster relaxed\n"),
    "no fence behind what threads stored": Planted(f"{STORED}        {BEFORE}", STORED),
    # halves
    "both blocks copy the first half": Planted("32 * i_b_rank + 64 * j_b", "64 * j_b"),
    "halves of the other block": Planted("32 * i_b_rank + 64 * j_b", "-32 * i_b_rank + 64 * j_b + 32"),
    "a half of another tile": Planted("32 * i_b_rank + 64 * j_b", "64 * i_b_rank + 64 * j_b"),
    "a half for its own block alone": Planted(" to [0, 1] from 0 led", " led", False),
    "a half for the second block alone": Planted(" to [0, 1] from 0 led", " to [0] from 1 led", False),
    "a half at the second half's rows": Planted("B_s[(k_o % 4), 0, 0, 0] =", "B_s[(k_o % 4), 32, 0, 0] ="),
    "rows of the first block in both": Planted("A_map[64 * k_o, 128 * i_b]", "A_map[64 * k_o, 128 * (i_b - i_b_rank)]"),
    "bytes of one block alone": Planted("bytes 40960", "bytes 20480"),
    "bytes of two halves too many": Planted("bytes 40960", "bytes 49152"),
    "both blocks expect bytes": Planted(EXPECT, "                mbarrier expect B_s_A_s_full[(k_o % 4)] bytes 40960\n", False),
    "the second block expects bytes": Planted(EXPECT, EXPECT.replace("== 0", "== 1")),
    "a half counts where it is": Planted(COPY_B, COPY_B.replace(" led", "")),
    "rows count where they are": Planted(COPY_A, COPY_A.replace(" led", "")),
    "the second block copies no half": Planted(COPY_B, f"                {FIRST}    {COPY_B}                }}\n"),
    "the second block copies no rows": Planted(COPY_A, f"                {FIRST}    {COPY_A}                }}\n"),
    "a product of halves in whole arrays": Planted("at 1024 halved 1", "at 1024", False),
    "a product of a whole array as of halves": Planted(WHOLE, f"{WHOLE} halved 1", False),
    "a product from within a half": Planted("B_s[((k_o + 2) % 4), 0, 2 *", "B_s[((k_o + 2) % 4), 8, 2 *"),
    "another slot of halves": Planted("B_s[((k_o + 2) % 4), 0,", "B_s[((k_o + 1) % 4), 0,"),
    # commits, and slots that are filled again
    "a commit to one block": Planted("columns commit total_done[(k_o % 2)] pair", "columns commit total_done[(k_o % 2)]"),
    "no commit": Planted(COMMIT, ""),
    "the second block does not wait for the turn before": Planted(LATE, f"            {FIRST}{LATE}            }}\n"),
    "the first block does not wait for the turn before": Planted(LATE, f"            {SECOND}{LATE}            }}\n"),
    "the second block does not wait for the last": Planted(LAST, f"    {FIRST}{LAST}    }}\n"),
    "nobody waits for the last": Planted(LAST, ""),
    "the other parity": Planted("parity (((k_o + 1) / 2) % 2)", "parity ((((k_o + 1) / 2) + 1) % 2)"),
    "slots filled again in the turn behind": Planted(
        f"{EXPECT}{COPY_B}{COPY_A}", f"{EXPECT}{COPY_B}{COPY_A}".replace("(k_o % 4)", "((k_o + 1) % 4)")
    ),
    "a barrier of a commit that is not made": Planted("        mbarrier init total_done[1] count 1\n", ""),
    "two arrivals a commit": Planted("init total_done[0] count 1", "init total_done[0] count 2"),
    # columns of both blocks
    "columns of one block": Planted("count 64 pair", "count 64"),
    "columns given back by one block": Planted("free 64 pair", "free 64"),
    "blocks do not meet before they launch for each other": Planted(START, START.replace("cluster", "block"), False),
    "columns given back before the other block is done": Planted(END, END.replace("cluster", "block"), False),
    "columns given back ahead of the last wait": Planted(f"{LAST}", f"{END}{LAST}"),
    "columns never given back": Planted(FREE, ""),
    # the instruction
    "half as many rows": Planted("0x10100490", "0x8100490", False),
    "of one block": Planted("cta_group::2.kind", "cta_group::1.kind", False),
    "launched by another thread": Planted(
        LAUNCHES, LAUNCHES.replace("(thread) == 0", "(thread) == 1")
    ),
    "launched by the second block alone": Planted(LAUNCH, f"{SECOND}{LAUNCH}}}\n"),
    "launched by both blocks' threads twice": Planted(LAUNCH, LAUNCH + LAUNCH),
    "a slice too few": Planted("for k_i_o in 0..4", "for k_i_o in 0..3"),
    "one turn after the other without a meeting": Planted(
        f"        barrier cluster relaxed\n        {AFTER}", f"        {AFTER}", False, "in turn"
    ),
    "one turn after the other without a wait": Planted(
        "        mbarrier wait total_done[0] parity (k_o % 2)\n", "", case="in turn"
    ),
}  # fmt: skip


def planted(bug: Planted) -> k.Plan:
    """The plan of a case with a bug in it."""
    return with_bug(plain(compiled(bug.case).plan), Bug(bug.old, bug.new))


@pytest.mark.parametrize("case", ["late", "in turn"])
def test_plain_text_is_proved(case: str) -> None:
    made = compiled(case)
    assert not open_of(made, parse_plan(plain(made.plan)))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_none_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert not is_proved(compiled(bug.case), lambda: planted(bug))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_what_changes_results_is_shown(name: str) -> None:
    bug = BUGS[name]
    arguments, wanted = CASES[bug.case].arguments((256, 64, 328))
    assert is_shown(compiled(bug.case), lambda: planted(bug), arguments, lambda found: np.array_equal(found["C"], wanted))
