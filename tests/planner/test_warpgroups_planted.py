"""Bugs put into automatic plans for warpgroups, of rings that lag: none is proved, and what changes results is shown."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.planner.test_warpgroups import CASES, compiled
from tests.planted import open_of, plain

from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record

FREE = "        wait_warpgroup 1\n"
FENCE = "            fence_warpgroup s[0] 4 read\n"
FULL = "            mbarrier wait B_s_A_s_full[((k_o + 2) % 4)] parity ((((k_o + 2) / 4) + 1) % 2)\n"
COMMIT = "            commit_warpgroup\n"
LAST = "    wait_warpgroup 0 holds s[0] 4 read\n"
MEET = "            barrier block\n            if (i32(thread)"
LOOP = "            for k_i_o in 0..4 uniform {\n"
A, B = "A_s[((k_o + 2) % 4), 0, 2 * k_i_o, 0] 8 descriptor", "B_s[((k_o + 2) % 4), 0, 2 * k_i_o, 0] 8 descriptor"
D = '"((4,8,4),(2,2,1)):((2@1,1@0,16@0),(1@1,8@0,8@1))"'
KNOWN = "        fence init\n    }\n    barrier block\n"


class Planted(Record):
    """`old` becomes `new` in the plan of a case, at its first sizes. `shown`: numbers are others then, or a fault is found."""

    old: str
    new: str
    shown: bool = True
    case: str = "rows of both"


BUGS = {
    # the ring that lags
    "released early": Planted(FREE, "        wait_warpgroup 2\n"),
    "never waited for": Planted(FREE, ""),
    "no barrier behind the wait": Planted(MEET, MEET.replace("            barrier block\n", "")),
    "filled a turn ahead of what it may": Planted("B_s[(k_o % 4), 0, 0, 0] =", "B_s[((k_o + 1) % 4), 0, 0, 0] ="),
    "groups never closed": Planted(COMMIT, ""),
    "the slot before": Planted(A, A.replace("k_o + 2", "k_o + 1")),
    "used a turn early": Planted("i64(k_o) >= i64(2)", "i64(k_o) >= i64(1)"),
    "used a turn late": Planted("i64(k_o) >= i64(2)", "i64(k_o) > i64(2)"),
    "one turn too few": Planted("for k_o in 0..8", "for k_o in 0..7"),
    "one slice too many": Planted("(i64(k_o) < i64(6))", "(i64(k_o) < i64(7))", False),
    # barriers
    "read before it is there": Planted(FULL, ""),
    "the other parity": Planted("+ 1) % 2)", "+ 2) % 2)"),
    "the barrier of another slot": Planted(FULL, FULL.replace("_full[((k_o + 2) % 4)]", "_full[((k_o + 3) % 4)]")),
    "bytes too few": Planted("bytes 9216", "bytes 9200"),
    "bytes of the rows that are there": Planted("bytes 9216", "bytes 8832"),
    "a barrier that is not known": Planted(KNOWN, KNOWN.replace("    barrier block\n", ""), False),
    # registers
    "no fence": Planted(FENCE, ""),
    "a fence of some registers": Planted("fence_warpgroup s[0] 4", "fence_warpgroup s[0] 2"),
    "results before the wait": Planted(LAST, "    wait_warpgroup 0\n"),
    "results of a product under way": Planted(LAST, LAST.replace("wait_warpgroup 0", "wait_warpgroup 1")),
    "results of no product": Planted(LAST, ""),
    "sums begun in part": Planted("for r in 0..2 unroll", "for r in 0..1 unroll"),
    # operands
    "another swizzle": Planted(f"{A} (128, 16, 1024)", f"{A} (64, 16, 1024)"),
    "rows half as far apart": Planted(f"{A} (128, 16, 1024)", f"{A} (128, 16, 512)"),
    "the first slice each time": Planted(B, B.replace("2 * k_i_o", "0")),
    "a map of another swizzle": Planted("box [64, 64] steps [1, 1] swizzle 128", "box [64, 64] steps [1, 1] swizzle 64"),
    "another strip of A": Planted("A_map[64 * k_o, 64 * i_b]", "A_map[64 * k_o, 64 * i_b + 8]"),
    "another strip of B": Planted("B_map[64 * k_o, 8 * j_b]", "B_map[64 * k_o + 8, 8 * j_b]"),
    "a depth of three": Planted(LOOP, LOOP.replace("0..4", "0..3")),
    # lanes
    "lanes permuted": Planted(D, '"((2,2,8,4),(2,2,1)):((4@1,2@1,1@0,16@0),(1@1,8@0,8@1))"'),
    "warps permuted": Planted(D, '"((4,8,2,2),(2,2,1)):((2@1,1@0,32@0,16@0),(1@1,8@0,8@1))"'),
    "registers permuted": Planted(D, '"((4,8,4),(2,2,1)):((2@1,1@0,16@0),(8@0,1@1,8@1))"'),
    "results of other lanes": Planted("((lane_1 / 4) % 8)", "(lane_1 % 8)"),
    "results of other registers": Planted("= s[2 * r_2 + r_3]", "= s[r_2 + 2 * r_3]"),
    "results beyond the last row": Planted("< i64(67)", "< i64(68)"),
    "a row too few": Planted("< i64(67)", "< i64(66)"),
}  # fmt: skip


def planted(bug: Planted) -> k.Plan:
    text = plain(compiled(bug.case, CASES[bug.case].sizes[0]).plan)
    assert bug.old in text, (bug.old, text)
    return parse_plan(text.replace(bug.old, bug.new))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert open_of(compiled(bug.case, CASES[bug.case].sizes[0]), planted(bug))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    bug = BUGS[name]
    case, at = CASES[bug.case], CASES[bug.case].sizes[0]
    given, sums = case.arguments(dict(zip("MNK", at, strict=True)))
    made = compiled(bug.case, at)
    try:
        for seed in (None, 1, 2):
            run = run_plan(made.function, planted(bug), given, seed=seed)
            if run.reports or not np.array_equal(run.arrays["C"], sums):
                return
    except (CompilerBug, AssertionError):
        return  # it cannot even be printed, or launched
    pytest.fail("nothing shows it")


def test_what_is_right_is_proved() -> None:
    made = compiled("rows of both", CASES["rows of both"].sizes[0])
    assert not open_of(made, parse_plan(plain(made.plan)))
