"""Bugs in rings that blocks of a cluster share: none is proved; what changes results, or hangs, is shown by the emulator.

Those are among them that shipped somewhere: slots that only the readers of one block release, a block that ends before another
one arrives there, bytes of one's own part alone, barriers that the other block has not made.
"""

from __future__ import annotations

from functools import partial

import pytest
from tests.planted import Bug, is_proved, line_of, only, plain, with_bug
from tests.schedule.shared import compiled
from tests.schedule.tiles import wrong

from texpr.support.diagnostic import CompilerBug

TEXT = plain(compiled("tiles").plan)
line, planted = partial(line_of, TEXT), partial(with_bug, TEXT)

ACQUIRE, EXPECT, LOAD = line("mbarrier wait B_s_A_s_empty"), line("mbarrier expect"), line("tensor load B_s")
USE, FREE, LAST = line("mbarrier wait B_s_A_s_full"), line("mbarrier release"), line("mbarrier release", 1)
LEFT, ALL, BOX = line("wait_warpgroup 1"), line("wait_warpgroup 0"), "32 * i_b_rank + 64 * j_c"
MEET, PART = line("barrier cluster"), "B_s[(k_o % 3), 32 * i_b_rank, 0, 0]"
MADE, LEAVE = "fence init\n    }\n    barrier cluster\n", "    }\n    barrier cluster\n}"
TILE, COPIES, USES = "0..(N / 128) uniform", "(i64(k_o) < i64(((K + 63) / 64)))", "(i64(k_o) >= i64(1))"
EMPTY, FULL = ACQUIRE[ACQUIRE.index("parity ") + 7 : -1], USE[USE.index("parity ") + 7 : -1]
FIRST, OTHER = "i64(i_b_rank) < i64(1)", "i64(i_b_rank) >= i64(1)"


BUGS = {
    # arrivals
    "nobody releases": Bug(FREE, ""),
    "slots are released in their own block alone": Bug(" blocks 2", ""),
    "the last slot is released in its own block alone": Bug(LAST, LAST.replace(" blocks 2", "")),
    "all but the last slot are released in their own block alone": Bug(FREE, FREE.replace(" blocks 2", "")),
    "arrivals in three blocks": Bug(" blocks 2", " blocks 3", False),
    "one block releases": Bug(FREE, only(FIRST, FREE)),
    "one block releases its last slot": Bug(LAST, only(OTHER, LAST)),
    "the last slot is not released": Bug(LAST, ""),
    "released twice": Bug(FREE, FREE + FREE),
    "the last slot is released twice": Bug(LAST, LAST + LAST),
    "one warp of four releases": Bug(FREE, only("i32(thread) < 32:i32", FREE).replace(" uniform", "")),
    "another slot is released": Bug(FREE, FREE.replace("(k_o + 1) % 3", "(k_o + 2) % 3")),
    "each block releases another slot": Bug(FREE, FREE.replace("(k_o + 1) % 3", "(k_o + i_b_rank + 1) % 3")),
    "released before the wait": Bug(LEFT, LEFT.replace("wait_warpgroup 1", "wait_warpgroup 2")),
    "the last slot is released behind a wait that leaves one": Bug(ALL, ALL.replace("wait_warpgroup 0", "wait_warpgroup 1")),
    "released a turn early": Bug("(i64(k_o) >= i64(2))", "(i64(k_o) >= i64(1))", turns=3),
    # counts
    "counts of one block's readers": Bug("count 8", "count 4"),
    "the count of one block's readers in one slot": Bug("empty[1] count 8", "empty[1] count 4"),
    "one warp less is counted": Bug("count 8", "count 7"),
    "one warp more is counted": Bug("count 8", "count 9"),
    "two arrivals fill a slot": Bug("full[0] count 1", "full[0] count 2"),
    # bytes
    "bytes of its own part alone": Bug("bytes 16384", "bytes 12288"),
    "16 bytes more": Bug("bytes 16384", "bytes 16400"),
    "bytes of both parts for each": Bug("bytes 16384", "bytes 24576"),
    # ranks
    "a part goes to the first block alone": Bug("to [0, 1] from 0", "to [0] from 0"),
    "a part goes to the block itself": Bug("to [0, 1] from 0", "to [0] from i_b_rank"),
    "a part goes to the other block": Bug("to [0, 1] from 0", "to [0] from -i_b_rank + 1"),
    "parts go to blocks that there are not": Bug("to [0, 1] from 0", "to [0, 1] from i_b_rank"),
    "both bring the same part": Bug(BOX, "64 * j_c"),
    "both bring their part to the same place": Bug(PART, "B_s[(k_o % 3), 0, 0, 0]"),
    "each brings the other's part": Bug(BOX, "-32 * i_b_rank + 64 * j_c + 32"),
    "one block brings its part": Bug(LOAD, only(FIRST, LOAD)),
    "rows of another block": Bug("[64 * k_o, 64 * i_b]", "[64 * k_o, 64 * i_b + 64 * i_b_rank]"),
    # phases
    "the parity of the other block, empty": Bug(EMPTY, f"((i_b_rank + {EMPTY[2:]}"),
    "the parity of the other block, full": Bug(FULL, f"((i_b_rank + {FULL[2:]}"),
    "another parity of empty slots": Bug(EMPTY, EMPTY.replace(" + 1) % 2", ") % 2")),
    "another parity of full slots": Bug(FULL, FULL.replace(" + 1) % 2", ") % 2")),
    "parities of empty slots begin anew": Bug(EMPTY, "(((k_o / 3) + 1) % 2)"),
    "one block waits for another slot": Bug(ACQUIRE, ACQUIRE.replace("empty[(k_o % 3)]", "empty[((k_o + i_b_rank) % 3)]")),
    "one block fills another slot": Bug(PART, "B_s[((k_o + i_b_rank) % 3), 32 * i_b_rank, 0, 0]"),
    # waits
    "no wait for empty slots": Bug(ACQUIRE, ""),
    "one block waits for empty slots": Bug(ACQUIRE, only(FIRST, ACQUIRE)),
    "filled before the wait": Bug(ACQUIRE + EXPECT + LOAD, EXPECT + LOAD + ACQUIRE),
    "one block waits for full slots": Bug(USE, only(OTHER, USE)),
    # turns
    "one block copies a turn less": Bug(COPIES, "(i64(k_o + i_b_rank) < i64(((K + 63) / 64)))"),
    "one block multiplies a turn less": Bug(USES, "(i64(k_o) >= i64(i_b_rank + 1))"),
    "one block has a tile less": Bug(TILE, "0..(N / 128) - i_b_rank uniform"),
    "one block has a tile more": Bug(TILE, "0..(N / 128) + i_b_rank uniform"),
    # life
    "a block ends before the other arrives there": Bug(LEAVE, "    }\n}"),
    "a block waits for its own threads alone": Bug(LEAVE, LEAVE.replace("cluster", "block")),
    "a block knows not that others have arrived": Bug(LEAVE, LEAVE.replace("cluster", "cluster relaxed"), False),
    "barriers are known in their own block": Bug(MADE, MADE.replace("cluster", "block")),
    "the other block is not said what was made": Bug(MADE, MADE.replace("cluster", "cluster relaxed")),
    "barriers are not known to engines": Bug(MADE, MADE.replace("fence init\n", "")),
    "blocks meet in each tile": Bug(LAST, LAST + " " * 16 + "barrier cluster\n", False),
}  # fmt: skip


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert not is_proved(compiled("tiles"), lambda: planted(BUGS[name]))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    bug = BUGS[name]
    sizes = {"M": 128, "N": 256, "K": 64 * bug.turns}
    try:
        plan = planted(bug)
    except CompilerBug:
        return
    assert any(wrong(compiled("tiles"), plan, sizes, seed) for seed in (None, *range(1, 9)))


def test_there_are_many() -> None:
    assert len(BUGS) >= 50
