"""Bugs planted in plans whose groups take tiles in turn: none is proved, and the emulator shows those that change something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.planted import is_proved, is_shown, line_of, plain
from tests.schedule.alternating import CASES, compiled
from tests.schedule.test_mma import NUMPY

from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.support.record import Record

TEXT = plain(compiled("stored").plan)
line = partial(line_of, TEXT)


class Bug(Record):
    """`old` becomes `new`, the first time. `shown`: the emulator finds a fault, or the numbers are others. `turns`: of a tile;
    `tiles`: of both blocks."""

    old: str
    new: str
    shown: bool = True
    turns: int = 3
    tiles: int = 7


def among(test: str, text: str) -> str:
    """What is done where a test holds."""
    pad = " " * (len(text) - len(text.lstrip()))
    return f"{pad}if ({test}) {{\n{text}{pad}}}\n"


TAKE, GIVE = line("mbarrier wait j_t_order"), line("mbarrier release j_t_order")
TURN = line("if (i32((thread / 128)) == i32((j_t % 2)))")
LOOP, USE, FREE = line("for k_o in"), line("mbarrier wait B_s_A_s_full"), line("mbarrier release B_s_A_s_empty")
FILL, STORE, END = line("instr stmatrix_x4_bf16 ["), line("tensor store"), line("wait_bulk 0", 1)
LEADS, READ, MEET = line("if (i32((thread % 128)) == 0:i32)"), line("wait_bulk 0 read"), line("barrier block part 128")
DONE, LAST = line("wait_warpgroup 0"), line("mbarrier release B_s_A_s_empty", 1)
EMPTY, MADE = line("mbarrier init B_s_A_s_empty[0]"), line("mbarrier init j_t_order[1]")
ZERO = TEXT[TEXT.index(TURN) : TEXT.index(TAKE)]
USES = TEXT[TEXT.index(TURN, TEXT.index(LOOP)) : TEXT.index(USE)]
ENDS = TEXT[TEXT.index(TURN, TEXT.index(USE)) : TEXT.index(GIVE)]
FENCED, PARITY = line("fence_warpgroup"), "((((j_t + 1) / 2) + 1) % 2)"
FIRST_TILES = "(j_t * ((-k_o + ((K + 63) / 64)) / 3) + j_t * ((k_o + 2) / 3) + ((k_o + 2) / 3) + 1) % 2"

BUGS = {
    # the turn is taken
    "no wait for the turn": Bug(TAKE, ""),
    "the turn is taken behind its uses": Bug(TAKE, "", tiles=9),
    "one warp waits for the turn": Bug(TAKE, among("i32((thread % 128)) < 32:i32", TAKE)),
    "the turn is taken from the second tile on": Bug(TAKE, among("i32(j_t) >= 2:i32", TAKE)),
    "the parity of the phase behind": Bug(PARITY, "(((j_t + 1) / 2) % 2)"),
    "the parity of tiles, not of a group's": Bug(PARITY, "((j_t + 1) % 2)"),
    "the parity of the tile that is taken": Bug(PARITY, "((j_t / 2) % 2)"),
    "it waits for the other one's barrier": Bug(TAKE, TAKE.replace("[(j_t % 2)]", "[((j_t + 1) % 2)]")),
    "one barrier for both": Bug(TAKE, TAKE.replace("[(j_t % 2)]", "[0]")),
    # and handed over
    "nobody hands over": Bug(GIVE, ""),
    "a warp does not hand over": Bug(GIVE, among("i32((thread % 128)) < 96:i32", GIVE)),
    "a group hands over to itself": Bug(GIVE, GIVE.replace("[((j_t + 1) % 2)]", "[(j_t % 2)]")),
    "handed over before the turns": Bug(TAKE, TAKE + GIVE, shown=False),
    "handed over when it is taken": Bug(GIVE, "", turns=4),
    "handed over by tiles with turns alone": Bug(GIVE, among("i64(K) >= i64(1)", GIVE), turns=0),
    "handed over twice": Bug(GIVE, GIVE + GIVE),
    "handed over from the second tile on": Bug(GIVE, among("i32(j_t) >= 1:i32", GIVE)),
    "handed over in each turn": Bug(FREE, FREE + GIVE.replace("            ", "                            ", 1), turns=6),
    "a phase of three warps": Bug(MADE, MADE.replace("count 4", "count 3"), tiles=20),
    "a phase of both groups": Bug(MADE, MADE.replace("count 4", "count 8")),
    "a barrier is not made": Bug(MADE, ""),
    # who has a tile
    "all groups use a turn": Bug(USES, USES.replace("== i32((j_t % 2))", "< 2:i32")),
    "the other group uses it": Bug(USES, USES.replace("(j_t % 2)", "((j_t + 1) % 2)")),
    "the first group uses it": Bug(USES, USES.replace("(j_t % 2)", "0")),
    "the other group stores it": Bug(ENDS, ENDS.replace("(j_t % 2)", "((j_t + 1) % 2)")),
    "two tiles in a row": Bug(ENDS, ENDS.replace("(j_t % 2)", "((j_t / 2) % 2)")),
    "the other group begins it": Bug(ZERO, ZERO.replace("(j_t % 2)", "((j_t + 1) % 2)")),
    # the ring of both
    "a slot waits for both groups": Bug(EMPTY, EMPTY.replace("count 4", "count 8")),
    "phases of a group's own tiles": Bug(FIRST_TILES, FIRST_TILES.replace("j_t *", "(j_t / 2) *")),
    "the last slots are not released": Bug(LAST, ""),
    "a slot is released by one group alone": Bug(FREE, among("i32(thread) < 128:i32", FREE)),
    # memory of a group
    "one tile of memory for both": Bug(FILL, FILL.replace("C_s[(j_t % 2)", "C_s[0")),
    "the other group's memory is stored": Bug(STORE, STORE.replace("C_s[(j_t % 2)", "C_s[((j_t + 1) % 2)")),
    "nobody waits until it was read": Bug(READ, ""),
    "who waits did not store": Bug(LEADS + READ, LEADS.replace("(thread % 128)", "thread") + READ),
    "one thread stores for both": Bug(LEADS + STORE, LEADS.replace("(thread % 128)", "thread") + STORE),
    "one thread waits at the end": Bug(END, among("i32(thread) == 0:i32", END)),
    "both groups meet": Bug(MEET, MEET.replace("part 128", "part 256")),
    "half a group meets": Bug(MEET, MEET.replace("part 128", "part 64")),
    "a group does not meet": Bug(MEET, ""),
    "results are read before they are there": Bug(DONE, ""),
}  # fmt: skip

SHORT = ("no wait for the turn", "handed over before the turns", "one tile of memory for both")


def only(name: str) -> pytest.MarkDecorator | tuple[()]:
    return () if name in SHORT else pytest.mark.long


def planted(bug: Bug) -> k.Plan:
    changed = TEXT
    if bug is BUGS["the turn is taken behind its uses"]:
        changed = changed.replace(TAKE, "").replace(GIVE, TAKE + GIVE)
        return parse_plan(changed)
    if bug is BUGS["handed over when it is taken"]:
        return parse_plan(changed.replace(GIVE, "").replace(TAKE, TAKE + GIVE))
    assert bug.old in changed, bug.old
    return parse_plan(changed.replace(bug.old, bug.new, 1))


@pytest.mark.planted
@pytest.mark.parametrize("name", [pytest.param(name, marks=only(name)) for name in BUGS])
def test_no_bug_is_proved(name: str) -> None:
    assert not is_proved(compiled("stored"), lambda: planted(BUGS[name]))


def shown(bug: Bug, plan: Callable[[], k.Plan]) -> bool:
    """Whether a plan is seen to be wrong, with the tiles and turns by which a bug shows."""
    rng, made = np.random.default_rng(5), compiled("stored")
    a, b = (rng.integers(-3, 4, (rows, 64 * bug.turns)) for rows in (64, 64 * bug.tiles))
    given: dict[str, NDArray[Any]] = {each: value.astype(NUMPY["bf16"]) for each, value in (("A", a), ("B", b))}
    wanted: NDArray[np.float32] = (a @ b.T).astype(NUMPY["bf16"]).astype(np.float32)

    def is_right(arrays: Mapping[str, NDArray[Any]]) -> bool:
        found: NDArray[np.float32] = arrays["C"].astype(np.float32)
        return np.array_equal(found, wanted)

    return is_shown(made, plan, given, is_right, (None, 1, 2, 3, 4, 5))


@pytest.mark.planted
@pytest.mark.parametrize("name", [pytest.param(name, marks=only(name)) for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    assert shown(BUGS[name], lambda: planted(BUGS[name]))


@pytest.mark.long
def test_it_shows_nothing_of_what_is_right() -> None:
    for bug in {(bug.turns, bug.tiles): bug for bug in BUGS.values()}.values():
        assert not shown(bug, lambda: parse_plan(TEXT))


def test_there_are_many() -> None:
    assert len(BUGS) >= 35 and CASES
