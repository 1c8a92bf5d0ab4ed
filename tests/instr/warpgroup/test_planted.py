"""Bugs put into kernels with products of a warpgroup: none is proved, and what changes results is shown by the emulator.

Those are among them that shipped somewhere: a fence left out, registers touched before the wait, a slot filled again before it
was read, another descriptor, permuted lanes, operands that threads wrote without a fence between proxies.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.instr.warpgroup.test_warpgroup import compiled
from tests.instr.warpgroup.texts import CASES
from tests.lowering.emulated import run_plan
from tests.planted import open_of, plain

from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record

FENCE = "        fence_warpgroup d[0] 32 read\n"
LOOP = "        for kk in 0..4 uniform {\n"
HOW = "(128, 16, 1024)"
START = (
    "            start instr wgmma_m64n64k16 [i, j, k] As[0, 2 * kk, 0] 8 descriptor (128, 16, 1024), "
    "Bs[0, 2 * kk, 0] 8 descriptor (128, 16, 1024), d[0] 32 update\n"
)
WHOLE = f"{LOOP}{START}        }}\n"
COMMIT = "        commit_warpgroup\n"
SCALE = "        for r in 0..32 unroll {\n            d[r] = (d[r] * 2.0:f32)\n        }\n"
D = 'fragment "((4,8,4),(2,2,8)) : ((2@1,1@0,16@0),(1@1,8@0,8@1))"'
A = 'descriptor fragment "(8,8) : (1@0,1@1)"'
LANDED = "        mbarrier wait Bs_As_full[0] parity (ko % 2)\n"
LAST = "    wait_warpgroup 0 holds d[0] 32 read"
FIRST = "        if (i64(ko) == i64(0)) uniform {\n"
AGAIN = SCALE.replace(" r ", " q ").replace("[r]", "[q]")
SLICE = "As[0, 2 * kk, 0] 8 descriptor"
FREE = "        wait_warpgroup 0"


class Planted(Record):
    """`old` becomes `new` in the plan of a case, without what waits say of why they are there. `shown`: the numbers are others
    then, or the emulator finds a fault."""

    case: str
    old: str
    new: str
    shown: bool = True


BUGS = {
    # registers
    "no fence": Planted("one tile", FENCE, ""),
    "no fence behind what lanes did": Planted("scaled", FENCE, ""),
    "a fence before what lanes did": Planted("scaled", SCALE + LANDED + FENCE, FENCE + SCALE + LANDED),
    "a fence behind the start": Planted("one tile", FENCE + WHOLE, WHOLE + FENCE),
    "a fence of half of the registers": Planted("one tile", "fence_warpgroup d[0] 32", "fence_warpgroup d[0] 16"),
    "a fence in the first turn alone": Planted("scaled", FENCE, f"{FIRST}    {FENCE}        }}\n"),
    "registers read before the wait": Planted("scaled", f"{FREE} holds d[0] 32 read", FREE),
    "registers touched between start and wait": Planted("scaled", COMMIT, COMMIT + AGAIN),
    "a register written between start and wait": Planted("one tile", COMMIT, COMMIT + "        d[3] = 0.0:f32\n"),
    "no wait for the last": Planted("one tile", LAST, "-"),
    "a wait that leaves one": Planted("one tile", LAST, LAST.replace("wait_warpgroup 0", "wait_warpgroup 1"), False),
    "a wait that holds no registers": Planted("one tile", f"{LAST}\n", "    wait_warpgroup 0\n"),
    "a wait that holds half of the registers": Planted("one tile", LAST, LAST.replace("d[0] 32", "d[0] 16")),
    "a wait that holds the other registers": Planted("one tile", LAST, LAST.replace("d[0] 32", "d[16] 16")),
    "the sum begun behind the start": Planted("one tile", WHOLE, WHOLE + "        d[0] = 0.0:f32\n"),
    "the sum begun in part": Planted("one tile", "for d_0 in 0..32", "for d_0 in 0..31"),
    "the sum begun with another number": Planted("one tile", "= 0.0:f32", "= 1.0:f32"),
    # groups
    "no group": Planted("one tile", COMMIT, ""),
    "a group that is closed before it begins": Planted("one tile", FENCE + WHOLE + COMMIT, COMMIT + FENCE + WHOLE),
    "a slot filled again before it is read": Planted("one tile", f"{FREE}\n", ""),
    "a slot filled again behind a wait that leaves one": Planted("one tile", f"{FREE}\n", "        wait_warpgroup 1\n"),
    "a wait behind the barrier": Planted("one tile", f"{FREE}\n        barrier block\n", f"        barrier block\n{FREE}\n"),
    "no barrier behind the wait": Planted("one tile", f"{FREE}\n        barrier block\n", f"{FREE}\n"),
    "a slot of the ring filled again before it is read": Planted("ring", f"{FREE}\n", ""),
    "a slot of the ring filled again behind a wait that leaves one": Planted("ring", f"{FREE}\n", "        wait_warpgroup 1\n"),
    "another slot of the ring": Planted("ring", "As[((ko + 1) % 3), 0, 2 * kk", "As[(ko % 3), 0, 2 * kk"),
    "no barrier of the ring": Planted("ring", "            barrier block\n", ""),
    # what is read
    "read before it is there": Planted("one tile", LANDED, ""),
    "the other parity": Planted("one tile", "parity (ko % 2)", "parity ((ko + 1) % 2)"),
    "a wait of the first warp alone": Planted(
        "one tile",
        LANDED,
        "        if (i32(thread) < i32(32)) {\n            mbarrier wait Bs_As_full[0] parity (ko % 2)\n        }\n",
    ),
    "no fence between proxies": Planted("written", "        fence async\n", ""),
    "a fence between proxies behind the barrier": Planted(
        "written", "        fence async\n        barrier block\n", "        barrier block\n        fence async\n"
    ),
    "a fence between proxies by the first warp alone": Planted(
        "written", "        fence async\n", "        if (i32(thread) < i32(32)) {\n            fence async\n        }\n"
    ),
    "no barrier behind the fence between proxies": Planted(
        "written", "        fence async\n        barrier block\n", "        fence async\n"
    ),
    "written again before it is read": Planted("written", f"{FREE}\n", ""),
    # descriptors
    "a swizzle of 64 bytes": Planted("one tile", f"{SLICE} {HOW}", f"{SLICE} (64, 16, 1024)"),
    "no swizzle": Planted("one tile", f"{SLICE} {HOW}", f"{SLICE} (0, 16, 1024)"),
    "rows half as far apart": Planted("one tile", HOW, "(128, 16, 512)"),
    "rows twice as far apart": Planted("one tile", HOW, "(128, 16, 2048)"),
    "distances exchanged": Planted("written", "(0, 1024, 128)", "(0, 128, 1024)"),
    "units half as far apart": Planted("written", "(0, 1024, 128)", "(0, 512, 128)"),
    "a start half a chunk late": Planted("one tile", "As[0, 2 * kk, 0]", "As[0, 2 * kk, 4]"),
    "a start a row late": Planted("one tile", "As[0, 2 * kk, 0]", "As[1, 2 * kk, 0]"),
    "the first slice each time": Planted("one tile", "As[0, 2 * kk, 0]", "As[0, 0, 0]"),
    "slices half as far apart": Planted("one tile", "As[0, 2 * kk, 0]", "As[0, kk, 0]"),
    "a and b exchanged": Planted(
        "one tile",
        f"As[0, 2 * kk, 0] 8 descriptor {HOW}, Bs[0, 2 * kk, 0]",
        f"Bs[0, 2 * kk, 0] 8 descriptor {HOW}, As[0, 2 * kk, 0]",
    ),
    "an array that begins at a multiple of 128": Planted(
        "one tile", "As: bf16[64, 8, 8] at 1024", "As: bf16[64, 8, 8] at 128", False
    ),
    # who does it
    "by three warps": Planted("one tile", WHOLE, f"        if (i32(thread) < i32(96)) {{\n{WHOLE}        }}\n"),
    "by lanes whose sum is positive": Planted("one tile", WHOLE, f"        if (d[0] >= 0.0:f32) {{\n{WHOLE}        }}\n"),
    "twice": Planted("one tile", START, START + START),
    "a slice too few": Planted("one tile", "for kk in 0..4", "for kk in 0..3"),
    "at once": Planted("one tile", "start instr", "instr", False),
    "on other registers": Planted("one tile", "d[0] 32 update\n        }", "d[1] 32 update\n        }", False),
    # the record
    "lanes of the sum permuted": Planted("one tile", D, 'fragment "((2,2,8,4),(2,2,8)) : ((4@1,2@1,1@0,16@0),(1@1,8@0,8@1))"'),
    "warps of the sum permuted": Planted("one tile", D, 'fragment "((4,8,2,2),(2,2,8)) : ((2@1,1@0,32@0,16@0),(1@1,8@0,8@1))"'),
    "registers of the sum permuted": Planted("one tile", D, 'fragment "((4,8,4),(2,2,8)) : ((2@1,1@0,16@0),(8@0,1@1,8@1))"'),
    "core matrices turned": Planted("one tile", A, 'descriptor fragment "(8,8) : (1@1,1@0)"'),
    "another template": Planted("one tile", ".f32.bf16.bf16 {d}", ".f32.f16.f16 {d}", False),
    "a transposed template": Planted("one tile", "1, 1, 1, 0, 0;", "1, 1, 1, 0, 1;", False),
    "meaning with a difference": Planted("one tile", "d[i, j] add =", "d[i, j] sub ="),
    "meaning of a part": Planted("one tile", "for k < 16 free", "for k < 15 free"),
    # results
    "results in other rows": Planted("one tile", "((t'2 / 4) % 8)", "(t'2 % 8)"),
    "results of other registers": Planted("one tile", "= d[r]", "= d[-r + 31]"),
}  # fmt: skip


def planted(bug: Planted) -> k.Plan:
    text, new = plain(compiled(bug.case).plan), bug.new
    old = bug.old
    if new == "-":  # the line goes
        old, new = next(line for line in text.splitlines(keepends=True) if line.startswith(old)), ""
    assert text.count(old) >= 1, (old, text)
    return parse_plan(text.replace(old, new))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert open_of(compiled(bug.case), planted(bug))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    bug = BUGS[name]
    arguments, wanted = CASES[bug.case].arguments((1, 1, 4) if bug.case == "ring" else (1, 1, 2))
    try:
        for seed in (None, 1, 2):
            run = run_plan(compiled(bug.case).function, planted(bug), arguments, seed=seed)
            if run.reports or not np.array_equal(run.arrays["C"], wanted):
                return
    except CompilerBug:
        return  # it cannot even be printed
    pytest.fail("nothing shows it")


PRODUCT = "((a[i, k] as f32) * (b[k, j] as f32))"
CHOSEN = f"select(((a[i, k] as f32) != 0.0:f32), {PRODUCT}, 0.0:f32)"


@pytest.mark.planted
def test_what_a_meaning_may_read_is_looked_at() -> None:
    """Also where it is read only if what else was read is not 0."""
    text, far = plain(compiled("one tile").plan), "Bs[56, 2 * kk, 0]"
    assert PRODUCT in text and "Bs[0, 2 * kk, 0]" in text
    arguments, _ = CASES["one tile"].arguments((1, 1, 2))
    told: list[list[str]] = []
    for meaning in (PRODUCT, CHOSEN):
        plan = parse_plan(text.replace(PRODUCT, meaning).replace("Bs[0, 2 * kk, 0]", far))
        told.append([str(each) for each in run_plan(compiled("one tile").function, plan, arguments, seed=None).reports])
    assert told[0] == told[1] and "read (1024 times)" in told[0][0]


def test_what_is_right_is_proved() -> None:
    for case in {bug.case for bug in BUGS.values()}:
        made = compiled(case)
        assert not open_of(made, parse_plan(plain(made.plan)))


def test_there_are_many() -> None:
    assert len(BUGS) >= 60
