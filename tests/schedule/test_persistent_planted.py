"""Bugs in blocks that go through tiles: none is proved; what changes results, or hangs, is shown by the emulator.

Those are among them that shipped somewhere: a ring whose phases begin anew with each tile, other trip counts of the two roles,
a last slot that nobody releases, tiles that two blocks do and that none does.
"""

from __future__ import annotations

from functools import partial

import pytest
from tests.planted import Bug, is_proved, line_of, only, plain, with_bug
from tests.schedule.tiles import compiled, wrong

TEXT = plain(compiled("late").plan)
line, planted = partial(line_of, TEXT), partial(with_bug, TEXT)

ACQUIRE, EXPECT = line("mbarrier wait B_s_A_s_empty"), line("mbarrier expect")
USE, FREE, LAST = line("mbarrier wait B_s_A_s_full"), line("mbarrier release"), line("mbarrier release", 1)
LEFT, ALL = line("wait_warpgroup 1"), line("wait_warpgroup 0")
FENCE, CLEAR = line("fence_warpgroup"), line("total[4 * r + 2 * r_1 + r_2] =")
TILE = "0..((N - 64 * j_c + 127) / 128) uniform"
KT = "((K + 63) / 64)"
EMPTY = "((j_t * ((-k_o + ((K + 63) / 64) + 2) / 3) + j_t * (k_o / 3) + (k_o / 3) + 1) % 2)"
FULL = "((j_t * ((-k_o + ((K + 63) / 64)) / 3) + j_t * ((k_o + 2) / 3) + ((k_o + 2) / 3) + 1) % 2)"
LATER, FIRST = "i64(j_t) >= i64(1)", "i64(j_t) < i64(1)"
UNSURE = "            if (i64(((K + 63) / 64) - 1) >= i64(0)) uniform {\n"
COPIES = f"(i64(k_o) < i64({KT}))"
USES = "(i64(k_o) >= i64(1))"
BOX = "64 * j_c + 128 * j_t"


BUGS = {
    # phases across tiles
    "parities of empty slots begin anew": Bug(EMPTY, "(((k_o / 3) + 1) % 2)"),
    "parities of full slots begin anew": Bug(FULL, "((((k_o + 2) / 3) + 1) % 2)"),
    "another parity of empty slots": Bug(EMPTY, EMPTY.replace(" + 1) % 2", ") % 2")),
    "another parity of full slots": Bug(FULL, FULL.replace(" + 1) % 2", ") % 2")),
    "another parity of empty slots in later tiles": Bug(EMPTY, f"((j_t + {EMPTY[2:]}"),
    "another parity of full slots in later tiles": Bug(FULL, f"((j_t + {FULL[2:]}"),
    "phases of a tile are counted by its turns": Bug(EMPTY, f"((j_t * {KT} + (k_o / 3) + 1) % 2)"),
    "as many phases in each slot": Bug(EMPTY, f"((j_t * (({KT} + 2) / 3) + (k_o / 3) + 1) % 2)"),
    "a turn too many in each tile": Bug(EMPTY, EMPTY.replace("/ 64) + 2)", "/ 64) + 3)")),
    # the last slots of a tile
    "the last slot is not released": Bug(LAST, ""),
    "the last slot is released twice": Bug(LAST, LAST + LAST),
    "the last slot is released in later tiles alone": Bug(LAST, only(LATER, LAST)),
    "the last slot is released before the wait": Bug(ALL + UNSURE + LAST, UNSURE + LAST + " " * 12 + "}\n" + ALL + UNSURE),
    "the last slot is released behind a wait that leaves one": Bug(ALL, ALL.replace("wait_warpgroup 0", "wait_warpgroup 1")),
    "another slot is released last": Bug(LAST, LAST.replace("+ 2) % 3", "+ 1) % 3"), False),
    "a slot is released without a turn": Bug("(i64(((K + 63) / 64) - 1) >= i64(0))", "(i64(((K + 63) / 64)) >= i64(0))", False),
    "one warp of four releases the last slot": Bug(LAST, only("i32(thread) < 32:i32", LAST).replace(" uniform", "")),
    # slots of other turns
    "released a turn early": Bug("(i64(k_o) >= i64(2))", "(i64(k_o) >= i64(1))", turns=3),
    "released behind a wait that leaves two": Bug(LEFT, LEFT.replace("wait_warpgroup 1", "wait_warpgroup 2")),
    "no wait for empty slots": Bug(ACQUIRE, ""),
    "no wait for empty slots in later tiles": Bug(ACQUIRE, only(FIRST, ACQUIRE)),
    "no wait for full slots in later tiles": Bug(USE, only(FIRST, USE)),
    "filled before the wait": Bug(ACQUIRE + EXPECT, EXPECT + ACQUIRE),
    # trip counts of roles
    "copies of a tile less": Bug(COPIES, f"(i64(k_o) < i64({KT} - 2 * j_t * {KT}))"),
    "copies of a turn less in later tiles": Bug(COPIES, f"(i64(k_o + j_t) < i64({KT}))"),
    "products of a turn less in later tiles": Bug(USES, "(i64(k_o) >= i64(j_t + 1))"),
    # tiles
    "a tile too many": Bug(TILE, TILE.replace("127) / 128)", "255) / 128)"), False),
    "a tile too few": Bug(TILE, TILE.replace("+ 127) / 128)", "+ 63) / 128)")),
    "as many tiles for all blocks": Bug(TILE, TILE.replace("N - 64 * j_c + 127", "N + 63")),
    "two blocks do one tile": Bug(BOX, "64 * j_c + 64 * j_t"),
    "copies for the tile of another block": Bug(f"B_map[64 * k_o, {BOX}]", "B_map[64 * k_o, 64 * j_c + 64 * j_t]"),
    "results of the tile before": Bug(f"{BOX} + 8 * r_3", "64 * j_c + 64 * j_t + 8 * r_3"),
    # registers
    "sums begin at nought in the first tile alone": Bug(CLEAR, only(FIRST, CLEAR)),
    "results are not awaited": Bug(ALL, ""),
    "no fence of registers in later tiles": Bug(FENCE, only(FIRST, FENCE)),
    # life
    "barriers for fewer warps": Bug("init B_s_A_s_empty[2] count 4", "init B_s_A_s_empty[2] count 3", turns=7),
    "barriers are made anew for each tile": Bug(
        f"    for j_t in {TILE} {{\n", f"    for j_t in {TILE} {{\n        mbarrier init B_s_A_s_empty[0] count 4\n", False
    ),
    "a barrier of the block between tiles": Bug(LAST, LAST + " " * 16 + "barrier block\n", False),
}  # fmt: skip


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert not is_proved(compiled("late"), lambda: planted(BUGS[name]))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    bug = BUGS[name]
    sizes = {"M": 64, "N": 264, "K": 64 * bug.turns}
    assert any(wrong(compiled("late"), planted(bug), sizes, seed) for seed in (None, *range(1, 9)))


def test_there_are_many() -> None:
    assert len(BUGS) >= 35
