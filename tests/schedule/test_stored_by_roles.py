"""Results that leave through shared memory, by the engine, where warps have roles: those that compute have a barrier of theirs.

No planted bug is proved, and the emulator shows those that change something.
"""

from __future__ import annotations

import re
from functools import cache, partial

import pytest
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.planted import is_proved, line_of, plain
from tests.planted import open_of as left_of
from tests.schedule.rows import differences, open_of
from tests.schedule.tiles import PRODUCT, by_blocks

from texpr.driver import Compiled, lower, parse
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.sync.channel.roles import Split
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import Record, replace

TILE = "persistent(j_b, blocks=2) -> (j_c, j_t)"
WIDE = PRODUCT.replace("): f32[M, N]", "): f32[M, N] align(16)")
SMALL = WIDE.replace("): f32", "): bf16").replace("C: f32", "C: bf16").replace("= total", "= bf16(total)")
ONE = "pipeline(k_o, stages=3, lag=1)  roles(k_o, copy=1, compute=1)"
TWO = "pipeline(k_o, stages=4, lag=1)  roles(k_o, copy=4, compute=2, registers=(24, 240))"


def stored(schedule: str, words: str, tiles: bool = True) -> str:
    """A schedule whose results the engine stores; with `tiles` a block goes through several."""
    made = schedule.replace(
        "    stage(A,", f"    stage(C, at={'j_t' if tiles else 'j_b'}, in=shared, via=tma{words}) -> C_s\n    stage(A,"
    )
    return made if tiles else made.replace(f"    {TILE}\n", "").replace("bind(j_c", "bind(j_b")


CASES = {
    "tiles": SMALL + stored(by_blocks(ONE), ", swizzle=128B"),
    "one tile": SMALL + stored(by_blocks(ONE), ", swizzle=128B", False),
    "plain rows": SMALL + stored(by_blocks(ONE), ""),
    "f32": WIDE + stored(by_blocks(ONE), ", box=(64, 32), swizzle=128B"),
    "two warpgroups": SMALL + stored(by_blocks(TWO, rows=128), ", swizzle=128B"),
    "no roles": SMALL + stored(by_blocks("pipeline(k_o, stages=3)"), ", swizzle=128B"),
}


@cache
def compiled(name: str) -> Compiled:
    function = parse(CASES[name])["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    """For all sizes."""
    assert open_of(compiled(name)) == []


SIZES = (
    {"M": 40, "N": 264, "K": 128},
    {"M": 64, "N": 136, "K": 0},
    {"M": 3, "N": 8, "K": 72},
    {"M": 130, "N": 200, "K": 192},
)
"""Ragged, of no turn, of a single chunk, and with more lines than one."""


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str, sizes: dict[str, int]) -> None:
    assert differences(compiled(name), parse(CASES[name])["f"], sizes, 0) == []


@pytest.mark.parametrize("name", ["tiles", "two warpgroups"])
def test_machine_code(name: str) -> None:
    """Warps store four matrices at once to shared memory, and nothing to memory; the engine does."""
    code = code_of(binary := built(compiled(name).source))
    assert spills_nothing(binary) and not serialised(binary)
    assert "UTMASTG" in code and len(re.findall("STSM.16.M88.4", code)) == 4 and "STS " not in code and "STS." not in code
    assert len(re.findall(r"BAR\.SYNC", code)) == 3


def test_the_store_goes_on_while_the_next_tile_is_computed() -> None:
    """Who stored waits for the tile to be read right before it is written again, and what threads do for that stands once."""
    pattern = r"(commit_warpgroup|wait_bulk 0 read|barrier block part|instr stmatrix(?=_x4_bf16 \[)|commit_bulk)"
    assert re.findall(pattern, plain(compiled("tiles").plan)) == [
        "commit_warpgroup", "wait_bulk 0 read", "barrier block part", "instr stmatrix", "barrier block part", "commit_bulk",
    ]  # fmt: skip


def test_rows_must_end_with_a_whole_chunk() -> None:
    text = CASES["tiles"].replace("N % 8 == 0", "N % 4 == 0")
    with pytest.raises(TexprError, match="every stride but the innermost is a multiple of 16 bytes"):
        lower((function := parse(text)["f"]), "sm_90a", schedule=function.schedules[0])


def test_those_that_copy_never_meet_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a copy's dependence were left to a barrier, that would be refused."""

    def covers(own: Split, need: Dependence) -> bool:
        return False

    monkeypatch.setattr(Split, "covers", covers)
    function = parse(CASES["one tile"])["f"]
    with pytest.raises(TexprError, match="all threads of a block would have to meet"):
        lower(function, "sm_90a", schedule=function.schedules[0])


TEXT = plain(compiled("tiles").plan)
line = partial(line_of, TEXT)


class Bug(Record):
    """`old` becomes `new`, the first time. `shown`: the emulator finds a fault, or the numbers are others. `case`: of which
    plan."""

    old: str
    new: str
    shown: bool = True
    case: str = "tiles"


FENCE, MEET, STORE = line("fence async"), line("barrier block part"), line("tensor store")
COMMIT, READ, END = line("commit_bulk"), line("wait_bulk 0 read"), line("wait_bulk 0", 1)
FILL, PUT = line("instr stmatrix_x4_bf16 ["), line("put[")
BY_FIRST = "            if (i32(thread) == 0:i32) {\n"
FIRST = BY_FIRST + STORE
AGAIN = f"{BY_FIRST}{READ}            }}\n{MEET}"
IN_FIRST = "                if (i64(j_t) < i64(1)) uniform {\n"
LEADS = "        if (i32(thread) == 0:i32) {\n"

BUGS = {
    # proxies
    "no fence": Bug(FENCE, ""),
    "a fence behind the barrier": Bug(FENCE + MEET, MEET + FENCE),
    "a fence of the thread that stores alone": Bug(FENCE + MEET + FIRST, MEET + FIRST.replace(STORE, "    " + FENCE + STORE)),
    "a fence of barriers": Bug(FENCE, FENCE.replace("async", "init")),
    # order of threads
    "no barrier before the store": Bug(FENCE + MEET, FENCE),
    "no barrier behind the wait": Bug(AGAIN, AGAIN.replace(MEET, "")),
    "a barrier before the wait": Bug(AGAIN, f"{MEET}{BY_FIRST}{READ}            }}\n"),
    "a barrier of half of the role": Bug(MEET, MEET.replace("part 128", "part 64"), False),
    "a barrier of all threads": Bug(MEET, MEET.replace(" part 128", ""), False),
    "a barrier of warps alone": Bug(FENCE + MEET, FENCE + MEET.replace("block part 128", "warp")),
    "a barrier of warps alone behind the wait": Bug(AGAIN, AGAIN.replace("block part 128", "warp")),
    "a barrier where one warp does not come": Bug(
        FENCE + MEET, FENCE + f"            if (i32(thread) < 96:i32) {{\n{MEET}            }}\n", False
    ),
    # groups
    "no wait before the tile is written again": Bug(READ, ""),
    "a wait that leaves one": Bug(READ, READ.replace("wait_bulk 0", "wait_bulk 1")),
    "a wait by another thread": Bug(BY_FIRST + READ, BY_FIRST.replace("0:i32", "32:i32") + READ),
    "a wait in the first tile alone": Bug(READ, f"{IN_FIRST}{READ}                }}\n"),
    "no group is closed": Bug(COMMIT, ""),
    "a group is closed before the store": Bug(STORE + COMMIT, COMMIT + STORE),
    "no wait at the end": Bug(END, "", case="one tile"),
    "a wait at the end by another thread": Bug(LEADS + END, LEADS.replace("== 0", "== 1") + END, case="one tile"),
    # what is stored
    "stored by two threads": Bug(FIRST, FIRST.replace("== 0:i32", "< 2:i32"), False),
    "stored by nobody": Bug(FIRST, FIRST.replace("== 0:i32", "== 128:i32")),
    "the tile of another block": Bug(STORE, STORE.replace("128 * j_t", "64 * j_t")),
    "the tile of another line": Bug(STORE, STORE.replace("64 * i_b", "64 * i_b + 64")),
    "coordinates swapped": Bug(STORE, STORE.replace("[64 * j_c + 128 * j_t, 64 * i_b]", "[64 * i_b, 64 * j_c + 128 * j_t]")),
    "chunks in another order": Bug(FILL, FILL.replace("/ 16), thread, 3)", "/ 16), (thread + 1) % 8, 3)")),
    "chunks in no order": Bug(FILL, FILL.replace("xor(2 * t + ((thread % 32) / 16), thread, 3)", "2 * t + (thread % 32) / 16")),
    "rows of other matrices": Bug(FILL, FILL.replace("8 * (((thread % 32) / 8) % 2)", "8 * ((thread % 32) / 16)")),
    "rows of one warp": Bug(FILL, FILL.replace("16 * (thread / 32)", "16 * (thread / 64)")),
    "by some warps": Bug(FILL, FILL.replace("first 128", "first 96"), False),
    "not stored": Bug(FILL, ""),
    "matrices in another order": Bug(PUT, PUT.replace("put[r_3 + 2 * r_4 + 4 * r_5]", "put[r_3 + 4 * r_4 + 2 * r_5]")),
    "registers of other columns": Bug(PUT, PUT.replace("4 * r_5 + 8 * t]", "8 * t]")),
    "registers of the first columns": Bug(PUT, PUT.replace(" + 8 * t]", "]")),
    "stored before results are there": Bug(line("wait_warpgroup 0"), ""),
}  # fmt: skip


def planted(bug: Bug) -> k.Plan:
    text = plain(compiled(bug.case).plan)
    assert bug.old in text, bug.old
    return parse_plan(text.replace(bug.old, bug.new, 1))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert not is_proved(compiled(BUGS[name].case), lambda: planted(BUGS[name]))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    bug = BUGS[name]
    made, function = compiled(bug.case), parse(CASES[bug.case])["f"]
    try:
        altered = replace(made, plan=planted(bug))
        assert differences(altered, function, {"M": 64, "N": 264, "K": 128}, 0)
    except CompilerBug:  # it may not even be printed
        return


def test_what_is_right_is_proved() -> None:
    assert not left_of(compiled("tiles"), parse_plan(TEXT))


def test_there_are_many() -> None:
    assert len(BUGS) >= 25
