"""Results of a tile that leave part by part, through one piece of shared memory that holds a part.

No planted bug is proved, and the emulator shows those that change something.
"""

from __future__ import annotations

import re
from functools import cache, partial

import pytest
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.planted import Bug, is_proved, line_of, only, plain
from tests.planted import open_of as left_of
from tests.schedule.rows import differences, open_of
from tests.schedule.test_stored_by_roles import ONE, SMALL, TILE, TWO, WIDE
from tests.schedule.tiles import by_blocks

from texpr.affine.expr import Sym, expr
from texpr.driver import Compiled, lower, parse
from texpr.ir import program as ir
from texpr.ir.instr.fragment import Misfit, fragment
from texpr.ir.kernel import kernels
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.shared import shared_bytes
from texpr.schedule.joint.lanes.parts import part_of
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace

BIASED = SMALL.replace("align(16)):", "align(16), bias: f32[N]):").replace("bf16(total)", "bf16(max(total + bias[j], 0.0))")
HALVES = "split(j_m_2, 32) -> (j_h, j_n)  reorder(j_h, i_w_2, i_m_2, j_n)"


def parts(schedule: str, words: str = ", swizzle=64B", cut: str = HALVES, tiles: bool = True) -> str:
    """A schedule whose results leave in halves of a tile."""
    made = schedule.replace("    stage(A,", f"    {cut}\n    stage(C, at=j_h, in=shared, via=tma{words}) -> C_s\n    stage(A,")
    return made if tiles else made.replace(f"    {TILE}\n", "").replace("bind(j_c", "bind(j_b")


CASES = {
    "tiles": SMALL + parts(by_blocks(ONE)),
    "one tile": SMALL + parts(by_blocks(ONE), tiles=False),
    "no roles": SMALL + parts(by_blocks("pipeline(k_o, stages=3, lag=1)"), tiles=False),
    "plain rows": SMALL + parts(by_blocks(ONE), ""),
    "quarters": SMALL + parts(by_blocks(ONE), "", HALVES.replace("32", "16")),
    "eighths": SMALL + parts(by_blocks(ONE), "", HALVES.replace("32", "8"), False),
    "f32": WIDE + parts(by_blocks(ONE), ", swizzle=128B"),
    "two warpgroups": SMALL + parts(by_blocks(TWO, rows=128)),
    "values of callers": BIASED + parts(by_blocks(ONE), tiles=False),
    "in registers": SMALL
    + parts(by_blocks(ONE), tiles=False).replace("stage(C, at=j_h, in=shared, via=tma, swizzle=64B) -> C_s", "serial(j_h)"),
}


@cache
def compiled(name: str) -> Compiled:
    function = parse(CASES[name])["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    """For all sizes."""
    assert open_of(compiled(name)) == []


SIZES = ({"M": 40, "N": 264, "K": 128}, {"M": 64, "N": 136, "K": 0}, {"M": 3, "N": 8, "K": 72}, {"M": 130, "N": 200, "K": 192})
"""Ragged, of no turn, of a single chunk, and with more lines than one; with tiles whose second half is out of bounds."""


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str, sizes: dict[str, int]) -> None:
    assert differences(compiled(name), parse(CASES[name])["f"], sizes, 0) == []


def test_a_part_needs_no_more_memory() -> None:
    """Half of a tile of 64 × 64 of 2 bytes."""
    whole = SMALL + by_blocks(ONE).replace(
        "    stage(A,", "    stage(C, at=j_t, in=shared, via=tma, swizzle=128B) -> C_s\n    stage(A,"
    )
    function = parse(whole)["f"]
    (before,) = kernels(lower(function, "sm_90a", schedule=function.schedules[0]).plan.steps)
    (now,) = kernels(compiled("tiles").plan.steps)
    assert shared_bytes(before) - shared_bytes(now) == 64 * 32 * 2


@pytest.mark.parametrize("name", ["tiles", "two warpgroups"])
def test_machine_code(name: str) -> None:
    """What is in registers stays there, and each part leaves by the engine."""
    code = code_of(binary := built(compiled(name).source))
    assert spills_nothing(binary) and not serialised(binary)
    assert len(re.findall("UTMASTG", code)) == 2 and len(re.findall("STSM.16.M88.4", code)) == 4


@pytest.mark.parametrize(
    "cut",
    [
        "split(i_m_2, 32) -> (j_h, j_n)  reorder(j_h, i_w_2, j_n, j_m_2)",
        "split(j_m_2, 4) -> (j_h, j_n)  reorder(j_h, i_w_2, i_m_2, j_n)",
    ],
)
def test_parts_are_of_registers(cut: str) -> None:
    """Not rows of half of the warps, nor columns of half of the lanes."""
    text = WIDE + parts(by_blocks(ONE), "", cut, False)
    with pytest.raises(TexprError, match="E0919") as raised:
        lower((function := parse(text)["f"]), "sm_90a", schedule=function.schedules[0])
    reason = "what an iteration of `j_h` goes through is not in registers of its own"
    assert raised.value.diagnostics[0].message == reason


def test_parts_cut_a_tile() -> None:
    """Every other column is no part, and neither is what a loop goes through twice."""
    held, i, h, n = fragment("((4,8),(2,2)):((2@1,1@0),(1@1,8@1))", (8, 16)), Sym("i"), Sym("h"), Sym("n")
    loop = ir.Seq(h, expr(2), ())
    good = part_of(held, (expr(i), 8 * expr(h) + expr(n)), [loop])
    assert (good.held.shape, good.held.registers, good.first, good.index) == ((8, 8), 2, 2 * expr(h), (expr(i), expr(n)))
    for index in ((expr(i), 2 * expr(n) + expr(h)), (expr(i), 4 * expr(h) + expr(n))):
        with pytest.raises(Misfit, match="does not cut a tile into parts along its dimension 1"):
            part_of(held, index, [loop])


TEXT = plain(compiled("tiles").plan)
line = partial(line_of, TEXT)
FENCE, MEET, STORE = line("fence async"), line("barrier block part"), line("tensor store")
COMMIT, READ = line("commit_bulk"), line("wait_bulk 0 read")
FILL, PUT = line("instr stmatrix_x4_bf16 ["), line("put[")
BY_FIRST = "                if (i32(thread) == 0:i32) {\n"
AGAIN = f"{BY_FIRST}{READ}                }}\n{MEET}"

BUGS = {
    "no wait before the next part is written": Bug(READ, ""),
    "a wait before the first part alone": Bug(AGAIN, only("i64(j_h) < i64(1)", AGAIN)),
    "a wait that leaves one": Bug(READ, READ.replace("wait_bulk 0", "wait_bulk 1")),
    "a wait by another thread": Bug(BY_FIRST + READ, BY_FIRST.replace("0:i32", "32:i32") + READ),
    "no barrier behind the wait": Bug(AGAIN, AGAIN.replace(MEET, "")),
    "no barrier before the store": Bug(FENCE + MEET, FENCE),
    "no fence": Bug(FENCE, ""),
    "no group is closed": Bug(COMMIT, ""),
    "the first part twice": Bug(PUT, PUT.replace("16 * j_h", "0 * j_h")),
    "registers of a neighbour": Bug(PUT, PUT.replace("16 * j_h", "8 * j_h")),
    "parts in another order": Bug(PUT, PUT.replace("16 * j_h", "16 * (1 - j_h)")),
    "stored to the first part": Bug(STORE, STORE.replace("32 * j_h", "0 * j_h")),
    "stored to the next tile": Bug(STORE, STORE.replace("32 * j_h", "64 * j_h")),
    "stored beside": Bug(STORE, STORE.replace("32 * j_h", "32 * j_h + 32")),
    "one part": Bug("for j_h in 0..2", "for j_h in 0..1"),
    "no part": Bug(STORE, ""),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert bug.old in TEXT, bug.old
    assert not is_proved(compiled("tiles"), lambda: parse_plan(TEXT.replace(bug.old, bug.new)))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    bug, function = BUGS[name], parse(CASES["tiles"])["f"]
    try:
        altered = replace(compiled("tiles"), plan=parse_plan(TEXT.replace(bug.old, bug.new)))
        assert differences(altered, function, {"M": 64, "N": 264, "K": 128}, 0)
    except CompilerBug:  # it may not even be printed
        return


def test_the_store_goes_on_while_the_next_tile_is_computed() -> None:
    """Who stored waits right before a part is written again: the first one of a tile for the last one of the tile before."""
    pattern = r"(commit_warpgroup|for j_h|wait_bulk 0 read|barrier block part|instr stmatrix(?=_x4_bf16 \[)|commit_bulk)"
    assert re.findall(pattern, TEXT) == [
        "commit_warpgroup", "for j_h", "wait_bulk 0 read", "barrier block part", "instr stmatrix", "barrier block part",
        "commit_bulk",
    ]  # fmt: skip


def test_what_is_right_is_proved() -> None:
    assert not left_of(compiled("tiles"), parse_plan(TEXT))
