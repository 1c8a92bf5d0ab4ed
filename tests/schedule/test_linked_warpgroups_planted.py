"""Bugs in rows that go through two products of a warpgroup: none is proved; what changes results is shown by the emulator."""

from __future__ import annotations

import pytest
from tests.planted import is_proved, open_of, plain
from tests.schedule.rows import is_shown
from tests.schedule.test_linked import Planted
from tests.schedule.test_linked_warpgroups import CASES, compiled

from texpr.driver import parse
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan

FENCE = "            fence_warpgroup p[0] 32 read, acc[0] 32 read\n"
WAIT = "        wait_warpgroup 0 holds s[0] 32 read, p[0] 32 read, acc[0] 32 read\n"
FIRST = "            wait_warpgroup 0 holds s[0] 32 read\n"
LENT = "p[8 * jv_o] 8 read"
START = "            for jv_o in 0..4 unroll uniform {\n"
COMMIT = "            commit_warpgroup\n"
HELD = 'read fragment "((4,8,4),(2,2,2)):((2@1,1@0,16@0),(1@1,8@0,8@1))"'
AWAITED = "            mbarrier wait Vs_full[((kb + 1) % 2)] parity ((((kb + 1) / 2) + 1) % 2)\n"
FIRST_TURN = "            if (i64(kb) == i64(1)) uniform {\n#            }\n"
ONE = "            if (i32(thread) == 5:i32) {\n                p[3] = 1.0:bf16\n            }\n"
FILL = "                        p[4 * r_31 + 2 * r_32 + r_33] = (s[4 * r_31 + 2 * r_32 + r_33] as bf16)\n"
SCALE = "acc[4 * r_34 + 2 * r_35 + r_36] = (acc[4 * r_34 + 2 * r_35 + r_36] * 0.5:f32)"


class Bug(Planted):
    """`shown`: the numbers are others then, or the emulator finds a fault. `case`: of which plan."""

    shown: bool = True
    case: str = "whole numbers"


def again(at: str) -> str:
    """Lanes write to the registers that they lent, at a place of the plan."""
    lines = "            for again in 0..32 unroll {\n                p[again] = 0.0:bf16\n            }\n"
    return at + lines


BUGS = {
    # registers that are lent
    "no fence": Bug(FENCE, ""),
    "a fence of what is summed up alone": Bug(FENCE, "            fence_warpgroup acc[0] 32 read\n"),
    "a fence of what is lent alone": Bug(FENCE, "            fence_warpgroup p[0] 32 read\n"),
    "a fence of half of what is lent": Bug(FENCE, FENCE.replace("p[0] 32", "p[0] 16")),
    "a fence in the first turn alone": Bug(FENCE, FIRST_TURN.replace("#", FENCE)),
    "written between fence and start": Bug(FENCE, again(FENCE)),
    "written again before the wait": Bug(f"{COMMIT}        }}\n{WAIT}", f"{again(COMMIT)}        }}\n{WAIT}"),
    "written again by one lane before the wait": Bug(
        f"{COMMIT}        }}\n{WAIT}", f"{COMMIT}{ONE}        }}\n{WAIT}"
    ),
    "read before the wait": Bug("holds p[0] 32 read\n", "\n", case="summed up behind"),
    "read behind a wait that leaves it": Bug(
        "wait_warpgroup 0 holds p[0] 32 read\n", "wait_warpgroup 1 holds p[0] 32 read\n", case="summed up behind"
    ),
    "a wait that leaves one": Bug(WAIT, WAIT.replace("wait_warpgroup 0", "wait_warpgroup 1")),
    "a wait that does not give back what is lent": Bug(WAIT, WAIT.replace("p[0] 32 read, ", "")),
    "a wait that gives half of it back": Bug(WAIT, WAIT.replace("p[0] 32", "p[0] 16")),
    "a wait that leaves an empty group": Bug(
        f"{COMMIT}        }}\n{WAIT}",
        f"{COMMIT}        }}\n        commit_warpgroup\n{WAIT.replace('wait_warpgroup 0', 'wait_warpgroup 1')}",
        False,
    ),
    "no wait in a turn": Bug(WAIT, ""),
    # the first product
    "scores touched before the wait": Bug(FIRST, ""),
    "scores touched behind a wait that leaves it": Bug(FIRST, FIRST.replace("wait_warpgroup 0", "wait_warpgroup 1")),
    "scores that start with another number": Bug("2 * r_16 + r_17] = 0.0:f32", "2 * r_16 + r_17] = 1.0:f32"),
    "no fence of scores": Bug("            fence_warpgroup s[0] 32 read\n", ""),
    # what is lent
    "slices of p in another order": Bug(LENT, "p[-8 * jv_o + 24] 8 read"),
    "the first slice each time": Bug(LENT, "p[0] 8 read"),
    "a slice left out": Bug(START, START.replace("0..4", "0..3")),
    "lanes of the operand permuted": Bug(HELD, 'read fragment "((4,8,4),(2,2,2)):((1@1,1@0,16@0),(4@1,8@0,8@1))"'),
    "rows of the operand permuted": Bug(HELD, 'read fragment "((4,8,4),(2,2,2)):((2@1,1@0,16@0),(1@1,8@1,8@0))"'),
    "warps of the operand permuted": Bug(HELD, HELD.replace("4,8,4", "4,8,2,2").replace("16@0", "32@0,16@0"), False),
    "registers of p swapped": Bug("p[4 * r_31 + 2 * r_32 + r_33] =", "p[4 * r_31 + 2 * r_33 + r_32] ="),
    "p of the turn before": Bug(FILL, FIRST_TURN.replace("#", FILL)),
    "a template that transposes": Bug("{d}, {a}, {b}, 1, 1, 1, 1;", "{d}, {a}, {b}, 1, 1, 1, 0;", False),
    # the result
    "rescaled before the product is done": Bug(WAIT, WAIT.replace(", acc[0] 32 read", "")),
    # slots
    "a slot filled again before it is read": Bug(f"{WAIT}        barrier block\n", f"        barrier block\n{WAIT}"),
    "no barrier of the ring": Bug(f"{WAIT}        barrier block\n", WAIT),
    "the other slot of values": Bug("Vs[((kb + 1) % 2), 16 * jv_o", "Vs[(kb % 2), 16 * jv_o"),
    "the other slot of keys": Bug("Ks[((kb + 1) % 2), 0, 2 * ds_o", "Ks[(kb % 2), 0, 2 * ds_o"),
    "values that are not awaited": Bug(AWAITED, ""),
    "queries that are not awaited": Bug("    mbarrier wait Qs_full[0] parity 0\n", ""),
    "queries of another block": Bug("Q_map[0, 64 * bi, h]", "Q_map[0, 64 * bi + 64, h]"),
}  # fmt: skip


def planted(bug: Bug) -> k.Plan:
    text = plain(compiled(bug.case).plan)
    assert bug.old in text, bug.old
    return parse_plan(text.replace(bug.old, bug.new))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert not is_proved(compiled(bug.case), lambda: planted(bug))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    bug = BUGS[name]
    assert is_shown(compiled(bug.case), parse(CASES[bug.case].text)["f"], lambda: planted(bug), 200)


def test_what_is_right_is_proved() -> None:
    for case in {bug.case for bug in BUGS.values()}:
        assert not open_of(compiled(case), parse_plan(plain(compiled(case).plan)))


def test_there_are_many() -> None:
    assert len(BUGS) >= 30
