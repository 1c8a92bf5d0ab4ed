"""Bugs put into kernels with scales in tensor memory: none is proved, and what changes results is shown by the emulator."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests.instr.tensor_memory.scaled import CASES, compiled
from tests.lowering.emulated import run_plan
from tests.planted import is_proved, is_shown, open_of, plain

from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.support.record import Record


class Planted(Record):
    """`old` becomes `new` in the plan of a case. `shown`: the numbers are others then, or the emulator finds a fault."""

    old: str
    new: str
    shown: bool = True
    case: str = "in turn"


SOLE = "        if (i32(thread) == 0:i32) {\n"
COPY = (
    "            launch instr tcgen05_cp_f8e8m0_x128 [quarter, i, j] a_s[0, 0] 16 descriptor (0, 16, 128), a_s_t[0] 16 write\n"
)
FULL = "        mbarrier wait B_s_A_s_full[0] parity (k_o % 2)\n"
DONE = "        mbarrier wait total_done[0] parity (k_o % 2)\n"
COMMIT = f"{SOLE}            columns commit total_done[0]\n        }}\n"
AHEAD = "        columns fence after\n"
READ = "a_s_t[4 * k_i_o] 4 read"
STORED = "a_s[(a_s_0 % 32), a_s_1 + 4 * (a_s_0 / 32)]"
LATE = "[16 * ((k_o + 2) % 4)] 16 write"
FREE = "    if (i32((thread / 32)) < i32(1)) {\n        columns free 256\n    }\n"
END = f"    columns fence before\n    barrier block\n    columns fence after\n{FREE}"

BUGS = {
    # which scale
    "the scale of another block": Planted(READ, "a_s_t[-4 * k_i_o + 12] 4 read"),
    "the scale of the first block each time": Planted(READ, "a_s_t[0] 4 read"),
    "the other operand's scales": Planted(READ, "b_s_t[4 * k_i_o] 4 read"),
    "scales of rows 32 further": Planted(READ, "a_s_t[4 * k_i_o + 1] 4 read"),
    "copied from the other operand's": Planted("[quarter, i, j] a_s[0, 0]", "[quarter, i, j] b_s[0, 0]"),
    "copied to the other operand's": Planted("128), a_s_t[0] 16 write", "128), b_s_t[0] 16 write"),
    "copied to one byte further": Planted("a_s_t[0] 16 write", "a_s_t[4] 16 write"),
    "rows half as far apart": Planted("16 descriptor (0, 16, 128), a_s_t", "16 descriptor (0, 16, 64), a_s_t"),
    "a swizzle where there is none": Planted("16 descriptor (0, 16, 128), a_s_t", "16 descriptor (32, 16, 256), a_s_t"),
    "of rows beside": Planted("a[a_s_0 + 128 * i_b,", "a[max(a_s_0 + 128 * i_b - 1, 0),"),
    "of the turn before": Planted("i_b, a_s_1 + 4 * k_o]", "i_b, a_s_1 + max(4 * k_o - 4, 0)]"),
    "rows in another order": Planted(f"{STORED} = a[", "a_s[(a_s_0 / 4), a_s_1 + 4 * (a_s_0 % 4)] = a["),
    "holes of nan": Planted("a_s_1 + 4 * (a_s_0 / 32)] = 1:f8e8m0", "a_s_1 + 4 * (a_s_0 / 32)] = 0:f8e8m0"),
    # order
    "no copy": Planted(COPY, ""),
    "copied by another thread": Planted(
        f"{SOLE}{COPY}", f"        if (i32(thread) == 1:i32) {{\n{COPY}        }}\n{SOLE}"
    ),
    "copied behind the commit": Planted(COMMIT, f"{COMMIT}{SOLE}{COPY}        }}\n"),
    "copied twice": Planted(COPY, COPY + COPY),
    "no fence of what threads stored": Planted("        fence async\n", ""),
    "no barrier behind what threads stored": Planted("        fence async\n        barrier block\n", "        fence async\n"),
    "no fence ahead of the copy": Planted(f"{AHEAD}{SOLE}{COPY}", f"{SOLE}{COPY}"),
    "no commit": Planted(COMMIT, ""),
    "a commit ahead of the products": Planted(FULL, f"{COMMIT}{FULL}"),
    "no wait for the products": Planted(DONE, ""),
    "the other parity": Planted("total_done[0] parity (k_o % 2)", "total_done[0] parity ((k_o + 1) % 2)"),
    # columns
    "columns of the sum": Planted("a_s_t: f8e8m0[16] from 132", "a_s_t: f8e8m0[16] from 124"),
    "columns of the other scales": Planted("a_s_t: f8e8m0[16] from 132", "a_s_t: f8e8m0[16] from 129"),
    "columns that are not taken": Planted("a_s_t: f8e8m0[16] from 132", "a_s_t: f8e8m0[16] from 254"),
    "columns given back before they are read": Planted("    for r_2 in 0", f"{END}    for r_2 in 0"),
    # records
    "lanes of scales permuted": Planted(
        'operand sa: f8e8m0[128] read columns fragment "((32,4),4):((1@0,0),32@0)"',
        'operand sa: f8e8m0[128] read columns fragment "((32,4),4):((4@0,0),1@0)"',
    ),
    "bytes of columns in another order": Planted("(4,1,4)):((1@0,0),(4@1,32@0,1@1))", "(4,1,4)):((1@0,0),(1@1,32@0,4@1))"),
    "a product without scales": Planted("((a[i, k] as f32) * (sa[i] as f32))", "(a[i, k] as f32)"),
    # a turn late
    "one slot for two turns": Planted(f"a_s_t{LATE}", "a_s_t[0] 16 write", case="late"),
    "copied to the slot behind": Planted(f"a_s_t{LATE}", "a_s_t[16 * ((k_o + 3) % 4)] 16 write", case="late"),
    "read in the slot before": Planted(
        "a_s_t[4 * k_i_o + 16 * ((k_o + 2) % 4)] 4 read", "a_s_t[4 * k_i_o + 16 * ((k_o + 1) % 4)] 4 read", case="late"
    ),
    "copied from the slot behind": Planted("a_s[((k_o + 2) % 4), 0, 0] 16", "a_s[((k_o + 3) % 4), 0, 0] 16", case="late"),
    "stored to the slot that is read": Planted("a_s[(k_o % 4), (a_s_0 % 32)", "a_s[((k_o + 2) % 4), (a_s_0 % 32)", case="late"),
}  # fmt: skip

SLOW = ("holes of nan", "copied by another thread")
"""Those whose counterexample is looked for, for seconds."""

ONE_SLOT = (
    (f"a_s_t{LATE}", "a_s_t[0] 16 write"),
    ("a_s_t[4 * k_i_o + 16 * ((k_o + 2) % 4)] 4 read", "a_s_t[4 * k_i_o] 4 read"),
)
"""The copies of a turn overwrite what the products of the turn before may still read: right numbers, and no order."""


def edited(case: str, *pairs: tuple[str, str]) -> k.Plan:
    """The plan of a case with replacements. Raises CompilerBug where that is no text of a plan."""
    text = plain(compiled(case).plan)
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return parse_plan(text)


@pytest.mark.parametrize("case", ["in turn", "late"])
def test_plain_text_is_proved(case: str) -> None:
    assert not open_of(compiled(case), edited(case))


@pytest.mark.planted
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in BUGS])
def test_none_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert not is_proved(compiled(bug.case), partial(edited, bug.case, (bug.old, bug.new)))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_what_changes_results_is_shown(name: str) -> None:
    bug = BUGS[name]
    arguments, wanted = CASES[bug.case].arguments((128, 64, 672))
    plan = partial(edited, bug.case, (bug.old, bug.new))
    assert is_shown(compiled(bug.case), plan, arguments, lambda found: np.array_equal(found["C"], wanted))


@pytest.mark.planted
def test_no_copy_overtakes_products() -> None:
    plan = edited("late", *ONE_SLOT)
    assert open_of(compiled("late"), plan)
    arguments, _ = CASES["late"].arguments((128, 64, 672))
    found = run_plan(compiled("late").function, plan, arguments, seed=1)
    assert any(report.buffer == "tensor memory" for report in found.reports)
