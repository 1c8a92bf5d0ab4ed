"""Bugs in rows whose turns overlap: none is proved; what changes results, or is a fault, is shown by the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.planted import is_proved, open_of, plain
from tests.schedule.rows import arguments, is_shown
from tests.schedule.test_linked import Planted
from tests.schedule.test_overlapped import CASES, compiled

from texpr.driver import parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan

CASE = "whole numbers"
PAD = " " * 20
LEFT = f"{PAD}wait_warpgroup 1 holds s[0] 32 read\n"
ALL = f"{PAD}wait_warpgroup 0 holds p[0] 32 read, acc[0] 32 read\n"
FIRST = f"{PAD}wait_warpgroup 0 holds s[0] 32 read\n"
FENCE = f"{PAD}fence_warpgroup p[0] 32 read, acc[0] 32 read\n"
SCORES = f"{PAD}fence_warpgroup s[0] 32 read\n"
COMMIT = f"{PAD}commit_warpgroup\n"
AWAITED = f"{PAD}mbarrier wait Vs_full[((kb + 1) % 2)] parity (((kb / 2) + 1) % 2)\n"
TURN = "        let decided_9: bool = (i64(kb) >= i64(1))\n"
LOOP = "for kb in 0..((L + 63) / 64) + 2 apart 2 1 uniform {"
END = "        wait_warpgroup 0 holds s[0] 32 read, p[0] 32 read, acc[0] 32 read\n        barrier block\n"


TEXT = plain(compiled(CASE).plan)


def part(first: str, last: str, at: int = 0) -> str:
    """Lines from one that begins so to the next that is so: the `at`-th such part."""
    lines = TEXT.splitlines(keepends=True)
    begins = [n for n, line in enumerate(lines) if line.startswith(first)][at]
    ends = next(n for n in range(begins, len(lines)) if lines[n] == last)
    return "".join(lines[begins : ends + 1])


PACKED = part(f"{PAD}for r_32 in", f"{PAD}}}\n")
"""What the lanes lend is made."""

SCALED = part(f"{PAD}for r_35 in", f"{PAD}}}\n")
"""What is summed up is rescaled."""

LATE = part(FENCE[:-1], COMMIT)
"""The product of the turn before."""

EARLY = part(SCORES[:-1], COMMIT)
"""The product of this turn."""

START = part(SCORES[:-1], COMMIT, 1)
"""The product of the first turn."""

LAST = part(FENCE[:-1], COMMIT, 1)
"""The product of the last turn."""


class Bug(Planted):
    """`shown`: the numbers are others then, or the emulator finds a fault."""

    shown: bool = True


BUGS = {
    # waits
    "scores touched before the wait": Bug(LEFT, ""),
    "one group too many is left": Bug(LEFT, LEFT.replace("wait_warpgroup 1", "wait_warpgroup 2")),
    "scores that are not given back": Bug(LEFT, f"{PAD}wait_warpgroup 1\n", False),
    "half of the scores given back": Bug(LEFT, LEFT.replace("s[0] 32", "s[0] 16"), False),
    "no wait for the late product": Bug(ALL, ""),
    "the late product is left once more": Bug(ALL, ALL.replace("wait_warpgroup 0", "wait_warpgroup 1")),
    "what is lent is not given back": Bug(ALL, ALL.replace("p[0] 32 read, ", ""), False),
    "sums that are not given back": Bug(ALL, ALL.replace(", acc[0] 32 read", ""), False),
    "what is lent is written before the wait": Bug("", ""),
    "rescaled before the late product is done": Bug(ALL, f"{ALL.replace(', acc[0] 32 read', '')}", False),
    "sums touched while they are summed up": Bug(ALL, f"{PAD}acc[3] = 1.0:f32\n{ALL}"),
    "what is lent is touched meanwhile": Bug(ALL, f"{PAD}p[3] = 1.0:bf16\n{ALL}"),
    "what is lent is read meanwhile": Bug(ALL, f"{PAD}l_own[0] = (p[3] as f32)\n{ALL}"),
    # groups
    "both products are one group": Bug(EARLY, EARLY.removesuffix(COMMIT)),
    "the late product is in no group": Bug(LATE, LATE.removesuffix(COMMIT)),
    "the first product comes last": Bug("", ""),
    # fences
    "no fence of what is lent": Bug(LATE, LATE.removeprefix(FENCE)),
    "no fence of the scores": Bug(EARLY, EARLY.removeprefix(SCORES)),
    "no fence of the scores in the first turn": Bug(START, START.removeprefix(SCORES)),
    "no fence in the last turn": Bug(LAST, LAST.removeprefix(FENCE)),
    # prologue, epilogue, phases
    "no product in the first turn": Bug(START, ""),
    "no wait in the first turn": Bug(FIRST, ""),
    "a wait that leaves it in the first turn": Bug(FIRST, FIRST.replace("wait_warpgroup 0", "wait_warpgroup 1")),
    "no product in the last turn": Bug(LAST, ""),
    "one turn too few": Bug(LOOP, LOOP.replace("+ 2", "+ 1")),
    "one turn too many": Bug(LOOP, LOOP.replace("+ 2", "+ 3"), False),
    "a late product before the first": Bug(
        "let decided_11: bool = (i64(kb - 1) >= i64(1))", "let decided_11: bool = (i64(kb - 1) >= i64(0))"
    ),
    "no late product in the second turn": Bug(
        "let decided_11: bool = (i64(kb - 1) >= i64(1))", "let decided_11: bool = (i64(kb - 1) >= i64(2))"
    ),
    "the late product is of this turn": Bug("", ""),
    "scores of the turn before": Bug("Ks[((kb + 1) % 2), 0, 2 * ds_o, 0]", "Ks[(kb % 2), 0, 2 * ds_o, 0]"),
    "values of the next turn": Bug("Vs[((kb + 1) % 2), 16 * jv_o, 0, 0]", "Vs[(kb % 2), 16 * jv_o, 0, 0]"),
    "values of the next turn, last": Bug("Vs[((kb + 1) % 2), 16 * jv_o_1, 0, 0]", "Vs[(kb % 2), 16 * jv_o_1, 0, 0]"),
    "values brought for this turn": Bug("V_map[0, 64 * kb - 64, h]", "V_map[0, 64 * kb, h]"),
    "values brought a turn early": Bug(
        "let decided_7: bool = (i64(kb) >= i64(1))", "let decided_7: bool = (i64(kb) >= i64(0))"
    ),
    "values that are not awaited": Bug(AWAITED + FENCE, FENCE),
    "values awaited in the phase before": Bug(AWAITED + FENCE, AWAITED.replace("+ 1) % 2)\n", "+ 0) % 2)\n") + FENCE),
    # slots
    "no barrier of the ring": Bug(END, END.splitlines(keepends=True)[0]),
    "slots are released a turn early": Bug("", ""),
}  # fmt: skip


def moved(name: str) -> str:
    """The plan with a bug, of which some move what stands apart."""
    bug = BUGS[name]
    match name:
        case "what is lent is written before the wait":
            return TEXT.replace(ALL, "", 1).replace(PACKED, PACKED + ALL, 1)
        case "the first product comes last":
            return TEXT.replace(EARLY, "", 1).replace(LATE, LATE + EARLY, 1)
        case "the late product is of this turn":
            both = f"{AWAITED}{LATE}"
            return TEXT.replace(both, "", 1).replace(LEFT, FIRST, 1).replace(ALL, "", 1).replace(SCALED, SCALED + both, 1)
        case "slots are released a turn early":
            return TEXT.replace(END, "", 1).replace(TURN, END.splitlines(keepends=True)[1] + TURN, 1)
        case _:
            assert bug.old in TEXT, bug.old
            at = TEXT.rindex(bug.old) if name == "no fence in the last turn" else TEXT.index(bug.old)
            return TEXT[:at] + bug.new + TEXT[at + len(bug.old) :]


def planted(name: str) -> k.Plan:
    text = moved(name)
    assert text != TEXT
    return parse_plan(text)


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert not is_proved(compiled(CASE), lambda: planted(name))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    assert is_shown(compiled(CASE), parse(CASES[CASE].text)["f"], lambda: planted(name), 200)


@pytest.mark.parametrize("turns", ["", " apart 2 1", " apart 0 3", " apart 4 0"])
def test_what_is_right_is_proved(turns: str) -> None:
    """However many turns printers write apart."""
    plan = parse_plan(TEXT.replace(" apart 2 1", turns))
    assert not open_of(compiled(CASE), plan)


@pytest.mark.parametrize("turns", ["", " apart 1 3"])
def test_turns_apart_do_the_same(turns: str) -> None:
    made, plan = compiled(CASE), parse_plan(TEXT.replace(" apart 2 1", turns))
    for length in (0, 64, 200):
        given = arguments(made, {"H": 1, "L": length})
        wanted = run(parse(CASES[CASE].text)["f"], given)
        found = run_plan(made.function, plan, given, {"L": length})
        assert not found.reports
        assert all(np.array_equal(found.arrays[name], value) for name, value in wanted.items())


def test_there_are_many() -> None:
    assert len(BUGS) >= 30
