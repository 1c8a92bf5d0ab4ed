"""Roles: one warp copies ahead, a warpgroup multiplies; proved for all sizes, right in any order, and no planted bug is proved.

Those are among them that shipped somewhere: an arrival count off by one, a parity flipped, a slot released before the wait,
bytes off by 16, other trip counts on both sides, a barrier of the block where only some of its threads are.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from random import Random

import numpy as np
import pytest
from tests.instr.test_sound import check
from tests.instr.warpgroup.test_sound import read
from tests.instr.warpgroup.texts import CASES, TILED
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.planted import open_of, plain

from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.lowering.sync.channel.roles import require_found
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import Record, replace

STAGED = """
    stage(A, at=ko, in=shared, via=tma, swizzle=128B) -> As
    stage(B, at=ko, in=shared, via=tma, swizzle=128B) -> Bs
"""

SLOTS = 3

TEXT = (
    TILED
    + f"""
schedule product "roles" for sm_90a {{{STAGED}    pipeline(ko, stages={SLOTS})  roles(ko)
}}

schedule product "late" for sm_90a {{{STAGED}    pipeline(ko, stages={SLOTS}, lag=1)  roles(ko, copy=1, compute=1)
}}
"""
)


@cache
def made(name: str) -> Compiled:
    function = parse(TEXT)["product"]
    return lower(function, "sm_90a", schedule=next(s for s in function.schedules if s.name == name))


def shown(name: str, plan: k.Plan, turns: int, seed: int | None) -> str | None:
    """What is wrong of a run, if anything is."""
    arguments, wanted = CASES["ring"].arguments((1, 1, turns))
    run = run_plan(made(name).function, plan, arguments, seed=seed)
    if run.reports:
        return str(run.reports[0])
    return None if np.array_equal(run.arrays["C"], wanted) else "other numbers"


@pytest.mark.parametrize("name", ["roles", "late"])
@pytest.mark.parametrize("turns", [0, 1, SLOTS - 1, SLOTS, SLOTS + 1, 2 * SLOTS + 1])
def test_right_in_any_order(name: str, turns: int) -> None:
    for seed in (None, 1, 2, 3):
        assert shown(name, made(name).plan, turns, seed) is None


@pytest.mark.parametrize("name", ["roles", "late"])
def test_proved_for_all_sizes(name: str) -> None:
    assert not open_of(made(name), made(name).plan)
    assert not open_of(made(name), parse_plan(plain(made(name).plan)))


def test_the_program_keeps_its_order_and_says_who() -> None:
    text = plan_text(made("roles").plan)
    assert "role copy 4 1" in text and "role compute 0 4" in text and text.count("barrier block") == 1
    assert text.index("role copy") < text.index("mbarrier wait Bs_As_empty") < text.index("mbarrier wait Bs_As_full")
    assert "if (warp >= 4) {" in made("roles").source and made("roles").source.count("for (int ko") == 2


@pytest.mark.parametrize("name", ["roles", "late"])
def test_machine_code_is_as_planned(name: str) -> None:
    """Nothing is spilled, ptxas has nothing to say, there is one barrier of the block, and addresses of tiles are computed in
    registers of the warp."""
    code = code_of(binary := built(made(name).source))
    assert len(binary.kernels) == 1 and spills_nothing(binary) and not serialised(binary)
    assert len(re.findall(r"BAR\.SYNC", code)) == 1 and "HGMMA" in code and "SYNCS.ARRIVE" in code
    between = code[code.index("HGMMA") : code.rindex("HGMMA")]
    assert "R2UR" not in between


REFUSED = {
    "roles(ko, copy=5)": "gives copies at most 4 warps, not 5",
    "roles(ko, compute=2)": "128 threads of a block compute, and 8 warps are asked for",
    "roles(kk)": "`kk` copies nothing ahead",
    "roles(ko, store=1)": "has no `store=`",
}
"""What is said of other directives in a schedule that has a ring."""


@pytest.mark.parametrize("said", REFUSED)
def test_what_does_not_fit_is_refused(said: str) -> None:
    with pytest.raises(TexprError) as raised:
        function = parse(TEXT.replace("roles(ko)", said))["product"]
        lower(function, "sm_90a", schedule=next(s for s in function.schedules if s.name == "roles"))
    assert REFUSED[said] in str(raised.value)


def test_roles_that_no_kernel_has_are_refused() -> None:
    function = made("roles").function
    bare = [replace(kernel, body=()) for kernel in k.kernels(made("roles").plan.steps)]
    with pytest.raises(TexprError, match="no kernel has the loop"):
        require_found(function, bare)


def test_readers_that_are_no_products_are_refused() -> None:
    text = TEXT.replace("seq 4 |kk| {", "d[0] += f32(A[64 * bi, 64 * ko + t % 64]) seq 4 |kk| {", 1)
    function = parse(text)["product"]
    with pytest.raises(TexprError, match="E0920"):
        lower(function, "sm_90a", schedule=next(s for s in function.schedules if s.name == "roles"))


WAIT = "                    mbarrier wait Bs_As_empty[(ko % 3)] parity (((ko / 3) + 1) % 2)\n"
EXPECT = "                    mbarrier expect Bs_As_full[(ko % 3)] bytes 16384\n"
USE = "                mbarrier wait Bs_As_full[((ko + 1) % 3)] parity ((((ko + 1) / 3) + 1) % 2)\n"
FREE = "                wait_warpgroup 0\n"
RELEASE = "                mbarrier release Bs_As_empty[((ko + 1) % 3)]\n"
COMPUTE = "if (i32(thread) < 128:i32) role compute"
LEADS = "if (i32(thread) == 128:i32)"


class Planted(Record):
    """`old` becomes `new` in a plan. `shown`: the emulator finds a fault, or the numbers are others; what is refused as text is
    not run."""

    old: str
    new: str
    case: str = "roles"
    shown: bool = True


BUGS = {
    # counts
    "an arrival too many": Planted("init Bs_As_empty[1] count 4", "init Bs_As_empty[1] count 5"),
    "an arrival too few": Planted("init Bs_As_empty[1] count 4", "init Bs_As_empty[1] count 3"),
    "an arrival of each lane": Planted("init Bs_As_empty[0] count 4", "init Bs_As_empty[0] count 128"),
    "two arrivals for a fill": Planted("init Bs_As_full[0] count 1", "init Bs_As_full[0] count 2"),
    "two warps release": Planted(RELEASE, f"                if (i32(thread) < 64:i32) {{\n{RELEASE}                }}\n"),
    "released twice": Planted(RELEASE, RELEASE + RELEASE),
    "nobody releases": Planted(RELEASE, ""),
    "all lanes of the warp copy": Planted(LEADS, "if (i32(thread) >= 128:i32)"),
    "two lanes copy": Planted(LEADS, "if (i32(thread) < 130:i32)"),
    # bytes
    "16 bytes more": Planted("bytes 16384", "bytes 16400"),
    "16 bytes less": Planted("bytes 16384", "bytes 16368"),
    # phases
    "another parity for empty slots": Planted("parity (((ko / 3) + 1) % 2)", "parity ((ko / 3) % 2)"),
    "another parity for full slots": Planted(USE, USE.replace("(((ko + 1) / 3) + 1)", "((ko + 1) / 3)")),
    "parity 1 for ever": Planted("parity (((ko / 3) + 1) % 2)", "parity 1"),
    "another slot is waited for": Planted("mbarrier wait Bs_As_empty[(ko % 3)]", "mbarrier wait Bs_As_empty[((ko + 1) % 3)]"),
    "another slot is released": Planted(RELEASE, RELEASE.replace("ko + 1", "ko + 2"), shown=False),  # of a turn before
    "another slot is filled": Planted("expect Bs_As_full[(ko % 3)]", "expect Bs_As_full[((ko + 1) % 3)]"),
    # order
    "no wait for an empty slot": Planted(WAIT, ""),
    "no wait for a full slot": Planted(USE, ""),
    "released before the wait": Planted(FREE + RELEASE, RELEASE + FREE),
    "released behind a wait that leaves one": Planted(FREE, FREE.replace("0", "1")),
    "released with no wait": Planted(FREE, ""),
    "late, released behind a wait that leaves two": Planted("wait_warpgroup 1", "wait_warpgroup 2", "late"),
    "late, released a turn early": Planted("i64(2)) uniform", "i64(1)) uniform", "late"),
    "released before use": Planted(USE, RELEASE + USE),
    "filled before the wait": Planted(WAIT + EXPECT, EXPECT + WAIT),
    "released three turns late": Planted(RELEASE, f"                if (i64(ko) >= i64(5)) {{\n{RELEASE}                }}\n"),
    # trip counts
    "a turn is not copied": Planted("(i64(ko) < i64(p))", "(i64(ko) < i64(p - 1))"),
    "a turn too many is copied": Planted("(i64(ko) < i64(p))", "(i64(ko) < i64(p + 1))"),
    "the first turn is not used": Planted("(i64(ko) >= i64(2))", "(i64(ko) >= i64(3))"),
    "a turn is used twice": Planted("(i64(ko) >= i64(2))", "(i64(ko) >= i64(1))"),
    "the last turn is not used": Planted("0..p + 2", "0..p + 1"),
    # life
    "a barrier that nobody makes": Planted("        mbarrier init Bs_As_empty[2] count 4\n", ""),
    "a barrier that is made twice": Planted("init Bs_As_empty[2]", "init Bs_As_empty[1]"),
    "barriers that are not known": Planted("    barrier block\n", ""),
    # roles
    "a barrier of the block": Planted(RELEASE, RELEASE + "                barrier block\n", shown=False),
    "a barrier of the block where one copies": Planted(WAIT, WAIT + "                    barrier block\n", shown=False),
    "a role of more warps": Planted(f"{COMPUTE} 0 4", f"{COMPUTE} 0 5".replace("128", "160"), shown=False),
    "a condition of other warps": Planted("if (i32(thread) >= 128:i32) role", "if (i32(thread) >= 96:i32) role", shown=False),
    "what is between roles": Planted("    for ko in", "    wait_warpgroup 0\n    for ko in", shown=False),
}  # fmt: skip


def planted(bug: Planted) -> k.Plan:
    text = plain(made(bug.case).plan)
    assert bug.old in text, (bug.old, text)
    return parse_plan(text.replace(bug.old, bug.new))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert open_of(made(BUGS[name].case), planted(BUGS[name]))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    bug = BUGS[name]
    with suppress(CompilerBug):  # it may not even be printed
        assert any(shown(bug.case, planted(bug), 2 * SLOTS + 1, seed) for seed in (None, *range(1, 9)))


@pytest.mark.planted
@pytest.mark.parametrize("tried", [10, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["roles", "late"])
def test_what_is_proved_of_altered_kernels_is_right(name: str, tried: int) -> None:
    arguments, wanted = CASES["ring"].arguments((1, 1, SLOTS + 2))
    check(made(name), arguments, "C", wanted, Random(name), tried, read)


@pytest.mark.planted
def test_who_waits_for_what_is_told() -> None:
    report = shown("roles", planted(BUGS["nobody releases"]), SLOTS + 1, None)
    assert report is not None and "Bs_As_empty[0]" in report and "0 of 4 arrivals came" in report
