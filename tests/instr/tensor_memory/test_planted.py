"""Bugs put into kernels with products in tensor memory: none is proved, and what changes results is shown by the emulator.

Those are among them that shipped somewhere: a fence dropped, the commit or its wait left out, the other parity, a slot filled
again before it was read, columns given back early or never, lanes permuted, columns that overlap.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.instr.tensor_memory.texts import CASES, compiled
from tests.planted import is_proved, is_shown, open_of, plain

from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.support.record import Record


class Planted(Record):
    """`old` becomes `new` in the plan of a case. `shown`: the numbers are others then, or the emulator finds a fault."""

    old: str
    new: str
    shown: bool = True
    case: str = "ring"
    also: tuple[str, str] = ("", "")
    """Another replacement."""


AFTER, BEFORE, BLOCK = "columns fence after\n", "columns fence before\n", "barrier block\n"
SOLE = "if (i32(thread) == 0:i32) {\n"
LOAD = (
    "        columns fence after\n"
    "        instr tcgen05_ld_x32_f32 [group_2, i_2, j_2] total[32 * r_2] 32 read, total_part_1[0] 32 write\n"
)
COMMIT = f"            {SOLE}                columns commit total_done[0]\n            }}\n"
DONE = "            mbarrier wait total_done[0] parity (k_o % 2)\n"
FULL = "            mbarrier wait B_s_A_s_full[((k_o + 1) % 3)] parity ((((k_o + 1) / 3) + 1) % 2)\n"
LAUNCH = (
    "                    launch instr tcgen05_m128n64k16_f32_bf16 [i_1, j_1, k] A_s[((k_o + 1) % 3), 0, 2 * k_i_o, 0] "
    "8 descriptor (128, 16, 1024), B_s[((k_o + 1) % 3), 0, 2 * k_i_o, 0] 8 descriptor (128, 16, 1024), total[0] 64 update\n"
)
LOOP = f"            for k_i_o in 0..4 uniform {{\n                {SOLE}{LAUNCH}                }}\n            }}\n"
TURN = "        }\n        barrier block\n    }\n"
END = f"    {BEFORE}    {BLOCK}    {AFTER}    if (i32((thread / 32)) < i32(1)) {{\n        columns free 64\n    }}\n"
FREE = "    if (i32((thread / 32)) < i32(1)) {\n        columns free 64\n    }\n"
TAKE = "    if (i32((thread / 32)) < i32(1)) {\n        columns take first_column[0] count 64\n    }\n"
START = f"    {BEFORE}    {BLOCK}    {AFTER}    columns have first_column[0]\n"
SUM = 'operand d: f32[128, 64] update columns fragment "(128,(32,2)):(1@0,(1@1,32@1))"'
HOW = "(128, 16, 1024)"
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
AHEAD = (
    "                mbarrier expect B_s_A_s_full[(k_o % 4)] bytes 24576\n"
    "                tensor load B_s[(k_o % 4), 0, 0, 0] = B_map[64 * k_o, 64 * j_b] arrives B_s_A_s_full[(k_o % 4)]\n"
    "                tensor load A_s[(k_o % 4), 0, 0, 0] = A_map[64 * k_o, 128 * i_b] arrives B_s_A_s_full[(k_o % 4)]\n"
)

BUGS = {
    # fences
    "no fence behind what threads stored": Planted(f"32 write\n        {BEFORE}", "32 write\n"),
    "no fence ahead of what is launched": Planted(f"{FULL}            {AFTER}", FULL),
    "a fence behind what is launched": Planted(f"            {AFTER}{LOOP}", f"{LOOP}            {AFTER}"),
    "no fence ahead of what threads load": Planted(LOAD, LOAD.split("\n", 1)[1]),
    "a fence before the loop of loads' first turn alone": Planted(
        LOAD,
        LOAD.replace(f"        {AFTER}", f"        if (i64(r_2) == i64(0)) uniform {{\n            {AFTER}        }}\n"),
        False,
    ),
    "no fence behind what threads loaded, nor at the end": Planted(
        f"total_part_1[0] 32 write\n        {BEFORE}", "total_part_1[0] 32 write\n", also=(f"    }}\n    {BEFORE}", "    }\n")
    ),
    # barriers, commits and waits
    "no barrier between stores and products": Planted(TURN, "        }\n    }\n"),
    "no commit": Planted(COMMIT, ""),
    "a commit ahead of the launches": Planted(f"{LOOP}{COMMIT}", f"{COMMIT}{LOOP}"),
    "a commit in each turn of the launches": Planted(
        f"{LAUNCH}                }}\n            }}\n{COMMIT}",
        f"{LAUNCH}                    columns commit total_done[0]\n                }}\n            }}\n",
    ),
    "a commit of another thread": Planted(COMMIT, COMMIT.replace("== 0:i32", "== 1:i32")),
    "no wait for a commit": Planted(DONE, ""),
    "a wait ahead of the commit": Planted(f"{COMMIT}{DONE}", f"{DONE}{COMMIT}"),
    "the other parity": Planted("total_done[0] parity (k_o % 2)", "total_done[0] parity ((k_o + 1) % 2)"),
    "the same parity each time": Planted("total_done[0] parity (k_o % 2)", "total_done[0] parity 0"),
    "a wait of the first warp alone": Planted(
        DONE, f"            if (i32(thread) < i32(32)) {{\n    {DONE}            }}\n", False
    ),
    "two arrivals a phase": Planted("init total_done[0] count 1", "init total_done[0] count 2"),
    "a barrier that is not made": Planted("        mbarrier init total_done[0] count 1\n", ""),
    "a commit to the barrier of copies": Planted("columns commit total_done[0]", "columns commit B_s_A_s_full[0]"),
    "a wait for the barrier of copies": Planted("wait total_done[0] parity (k_o % 2)", "wait B_s_A_s_full[0] parity (k_o % 2)"),
    # operands in shared memory
    "read before it is there": Planted(FULL, ""),
    "another slot": Planted("A_s[((k_o + 1) % 3), 0, 2 * k_i_o", "A_s[((k_o + 2) % 3), 0, 2 * k_i_o"),
    "a swizzle of 64 bytes": Planted(f"8 descriptor {HOW}, B_s", "8 descriptor (64, 16, 1024), B_s"),
    "rows half as far apart": Planted(f"8 descriptor {HOW}, B_s", "8 descriptor (128, 16, 512), B_s"),
    "the first slice each time": Planted("A_s[((k_o + 1) % 3), 0, 2 * k_i_o, 0]", "A_s[((k_o + 1) % 3), 0, 0, 0]"),
    "a slice too few": Planted("for k_i_o in 0..4", "for k_i_o in 0..3"),
    "an array that begins at a multiple of 128": Planted(
        "A_s: bf16[3, 128, 8, 8] at 1024", "A_s: bf16[3, 128, 8, 8] at 128", False
    ),
    # columns
    "columns given back before they are read": Planted(
        "    for r_2 in 0..2 uniform {\n", f"{END}    for r_2 in 0..2 uniform {{\n"
    ),
    "columns never given back": Planted(FREE, ""),
    "columns given back by another warp": Planted(FREE, FREE.replace("(thread / 32)) < i32(1)", "(thread / 32)) >= i32(3)")),
    "fewer columns given back": Planted("columns free 64", "columns free 32"),
    "columns given back ahead of the barrier": Planted(END, f"{FREE}    {BEFORE}    {BLOCK}    {AFTER}"),
    "no barrier before columns are given back": Planted(END, f"    {BEFORE}    {AFTER}{FREE}"),
    "columns taken twice": Planted(TAKE, TAKE + TAKE),
    "fewer columns taken than there are": Planted("count 64", "count 32"),
    "a number of columns that is not given": Planted("count 64", "count 96", False),
    "columns taken behind the barrier": Planted(f"{TAKE}{START}", f"{START}{TAKE}"),
    "columns known without a barrier": Planted(START, f"    {BEFORE}    {AFTER}    columns have first_column[0]\n    {BLOCK}"),
    "an array behind the columns": Planted("total: f32[64] from 0", "total: f32[64] from 32", False),
    # what is moved
    "the sum begun in part": Planted("for r in 0..2 uniform", "for r in 0..1 uniform"),
    "the sum begun with another number": Planted("= 0.0:f32", "= 1.0:f32"),
    "stored to other columns": Planted("total[32 * r] 32 write", "total[16 * r] 32 write"),
    "loaded from other columns": Planted("total[32 * r_2] 32 read", "total[0] 32 read"),
    "loaded behind the end of the array": Planted("total[32 * r_2] 32 read", "total[32 * r_2 + 16] 32 read"),
    "launched twice": Planted(LAUNCH, LAUNCH + LAUNCH),
    "launched by each thread": Planted(f"                {SOLE}{LAUNCH}                }}\n", LAUNCH, False),
    "launched by the last thread": Planted(
        f"                {SOLE}{LAUNCH}", f"                {SOLE.replace('== 0', '== 127')}{LAUNCH}"
    ),
    "launched on other columns": Planted("total[0] 64 update", "total[32] 64 update"),
    "launched on every other column": Planted(SUM, SUM.replace("(32,2)):(1@0,(1@1,32@1))", "(2,32)):(1@0,(32@1,1@1))")),
    # the record
    "lanes of the sum permuted": Planted(SUM, SUM.replace("(128,(32,2)):(1@0,", "((64,2),(32,2)):((2@0,1@0),")),
    "lanes of a load permuted": Planted(
        'operand t: f32[32, 32] read columns fragment "(32,32):(1@0,1@1)"',
        'operand t: f32[32, 32] read columns fragment "((16,2),32):((2@0,1@0),1@1)"',
    ),
    "another instruction descriptor": Planted("0x8100490", "0x8100410", False),
    "no wait in a load": Planted(" tcgen05.wait::ld.sync.aligned;", "", False),
    "meaning with a difference": Planted("d[i, j] add =", "d[i, j] sub ="),
    # results
    "results in other rows": Planted("vector C[128 * i_b + lane_1,", "vector C[128 * i_b - lane_1 + 127,"),
    # the others
    "no wait, one after the other": Planted("        mbarrier wait total_done[0] parity (k_o % 2)\n", "", case="in turn"),
    # waited for a turn late
    "no wait for the turn before": Planted(LATE, "", case="late"),
    "a wait for the turn before in the third one": Planted(LATE, LATE.replace(">= 1", ">= 2"), case="late"),
    "a wait for the turn before with the other parity": Planted(
        LATE, LATE.replace("((k_o + 1) / 2)", "(k_o / 2)"), case="late"
    ),
    "a wait for this turn with the parity of the one before": Planted(
        LATE, LATE.replace("[((k_o + 1) % 2)]", "[(k_o % 2)]"), case="late"
    ),
    "no wait for the last": Planted(LAST, "", case="late"),
    "a wait for the last but one": Planted(LAST, LAST.replace("/ 64) + 1) % 2)]", "/ 64) + 0) % 2)]"), case="late"),
    "a wait for the last where there is none": Planted(LAST, LAST.replace(">= 1:i64", ">= 0:i64"), False, "late"),
    "all commits to one barrier": Planted("columns commit total_done[(k_o % 2)]", "columns commit total_done[0]", case="late"),
    "a slot filled again in the turn behind": Planted(f"{AHEAD}", AHEAD.replace("(k_o % 4)", "((k_o + 1) % 4)"), case="late"),
    "no barrier between waits and copies": Planted(TURN, "        }\n    }\n", case="late"),
    # one after the other
    "no barrier, one after the other": Planted("        barrier block\n", "", case="in turn"),
}  # fmt: skip


SLOW = (
    "a swizzle of 64 bytes",
    "meaning with a difference",
    "launched by the last thread",
    "the sum begun with another number",
)
"""Those whose counterexample is looked for, for seconds."""


def planted(bug: Planted) -> k.Plan:
    """The plan of a case with a bug in it."""
    text = plain(compiled(bug.case).plan)
    assert bug.old in text, bug.old
    assert bug.also[0] in text, bug.also
    return parse_plan(text.replace(bug.old, bug.new).replace(*bug.also) if bug.also[0] else text.replace(bug.old, bug.new))


@pytest.mark.parametrize("case", ["ring", "in turn", "late"])
def test_plain_text_is_proved(case: str) -> None:
    made = compiled(case)
    assert not open_of(made, parse_plan(plain(made.plan)))


@pytest.mark.planted
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in BUGS])
def test_none_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert not is_proved(compiled(bug.case), lambda: planted(bug))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_what_changes_results_is_shown(name: str) -> None:
    bug = BUGS[name]
    arguments, wanted = CASES[bug.case].arguments((128, 64, 264))
    assert is_shown(compiled(bug.case), lambda: planted(bug), arguments, lambda found: np.array_equal(found["C"], wanted))
