"""Rows whose turns overlap, with warps of their own that copy: two rings in one loop, each released when its product is done.

No planted bug is proved, and the emulator shows those that change something.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial

import pytest
from bench.common.attention import online
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.planted import is_proved, line_of, plain
from tests.schedule.linked import by_warpgroups, exact
from tests.schedule.rows import differences, is_shown, open_of
from tests.schedule.test_linked import Case

from texpr.driver import Compiled, lower, parse
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.support.diagnostic import TexprError

WIDE = " align(16)"
RING = "pipeline(kb, stages=2)\n    overlap(kb, dv, behind=js)\n    "


def roles(groups: int, registers: int = 240, ring: str = RING) -> str:
    """A ring whose copies four warps start, for so many warpgroups."""
    return f"{ring}roles(kb, copy=4, compute={groups}, registers=(24, {registers}))"


CASES = {
    "whole numbers": Case(exact(64, 64, WIDE) + by_warpgroups(last="r_9", more=roles(1))),
    "two warpgroups": Case(exact(64, 64, WIDE) + by_warpgroups(last="r_9", rows=128, more=roles(2))),
    "no registers asked for": Case(exact(64, 64, WIDE) + by_warpgroups(last="r_9", more=f"{RING}roles(kb, copy=1, compute=1)")),
    "a ring of three": Case(exact(64, 64, WIDE) + by_warpgroups(last="r_9", more=roles(1, ring=RING.replace("=2", "=3")))),
    "in order": Case(exact(64, 64, WIDE) + by_warpgroups(last="r_9", more=roles(1, ring="pipeline(kb, stages=2)\n    "))),
    "online, of f16": Case(online("f16", 64, 64, align=WIDE) + by_warpgroups(of="f16", more=roles(1)), apart=2**-10),
    "causal": Case(online(d=64, keys=64, causal=True, align=WIDE) + by_warpgroups(more=roles(1)), apart=2**-7),
}  # fmt: skip

LENGTHS = (1, 64, 65, 130, 200, 0)
"""Of 0 to 4 turns, which an empty, an odd, and an even number of whole blocks of keys have, and ragged ones."""


@cache
def compiled(name: str) -> Compiled:
    function = parse(CASES[name].text)["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    """For all sizes."""
    assert open_of(compiled(name)) == []


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str, length: int) -> None:
    case, made = CASES[name], compiled(name)
    assert differences(made, parse(case.text)["f"], {"L": length}, case.apart) == []


def test_each_ring_is_released_behind_its_own_product() -> None:
    words = re.findall(
        r"(mbarrier release \w+|wait_warpgroup \d holds \w+|commit_warpgroup)", plan_text(compiled("whole numbers").plan)
    )
    at = words.index("wait_warpgroup 1 holds s")
    assert words[at - 2 : at + 4] == [
        "commit_warpgroup", "commit_warpgroup", "wait_warpgroup 1 holds s", "mbarrier release Ks_empty",
        "wait_warpgroup 0 holds p", "mbarrier release Vs_empty",
    ]  # fmt: skip


@pytest.mark.parametrize("name, registers", [("two warpgroups", 168), ("no registers asked for", 0)])
def test_machine_code(name: str, registers: int) -> None:
    """Nothing spills, no barrier of the block is in the loop, and registers are given up and asked for."""
    code = code_of(binary := built(compiled(name).source))
    (used,) = binary.kernels
    assert spills_nothing(binary) and not serialised(binary)
    assert len(re.findall(r"BAR\.SYNC", code)) == 1
    assert len(re.findall("USETMAXREG", code)) == (2 if registers else 0)
    assert not registers or used.registers == registers


REFUSED = {
    "registers=(24, 248)": "leaves at most 240 registers to each thread that computes, not 248: `(24, 240)`",
    "registers=(20, 240)": "takes multiples of 8 from 24 to 256, not 20 and 240",
    "registers=240": "takes two numbers of registers",
    "registers=(24, 0)": "takes an integer of 1 or more here, not 0",
}


@pytest.mark.parametrize("said", REFUSED)
def test_registers_that_a_block_does_not_have_are_refused(said: str) -> None:
    text = CASES["two warpgroups"].text.replace("registers=(24, 240)", said)
    with pytest.raises(TexprError) as raised:
        lower((function := parse(text)["f"]), "sm_90a", schedule=function.schedules[0])
    assert REFUSED[said] in str(raised.value)


@pytest.mark.parametrize(
    "more",
    [roles(1, registers=64), f"{RING}launch_bounds(8)"],
    ids=["roles", "launch_bounds"],
)
def test_too_few_registers_are_no_fault_of_an_instruction(more: str) -> None:
    """With what the help says there are enough: the machine code of the others is made above."""
    function = parse(exact(64, 64, WIDE) + by_warpgroups(last="r_9", more=more))["f"]
    source = lower(function, "sm_90a", schedule=function.schedules[0]).source
    with pytest.raises(TexprError, match="E0613"):
        built(source)


def test_a_warp_alone_gives_up_no_registers() -> None:
    text = CASES["two warpgroups"].text.replace("copy=4", "copy=1")
    with pytest.raises(TexprError, match="4 warps have to copy, not 1"):
        lower((function := parse(text)["f"]), "sm_90a", schedule=function.schedules[0])


TEXT = plain(compiled("whole numbers").plan)
line = partial(line_of, TEXT)

ACQUIRE = {ring: line(f"mbarrier wait {ring}s_empty") for ring in "KV"}
EXPECT = {ring: line(f"mbarrier expect {ring}s_full") for ring in "KV"}
USE = {ring: line(f"mbarrier wait {ring}s_full") for ring in "KV"}
FREE = {ring: line(f"mbarrier release {ring}s_empty") for ring in "KV"}
FIRST = line("mbarrier release Ks_empty", 1)
"""Of the turn in which there is no late product."""
LAST = line("mbarrier wait Vs_full", 1)
LEFT, ALL = line("wait_warpgroup 1 holds s"), line("wait_warpgroup 0 holds p")

ROW = "        if (i32(thread) == 0:i32) {\n" + line("mbarrier expect Qs_full")

Change = tuple[str, str]

BUGS: Mapping[str, tuple[Change, bool]] = {
    # counts
    **{f"an arrival too many, {r}": ((f"init {r}s_empty[1] count 4", f"init {r}s_empty[1] count 5"), True) for r in "KV"},
    **{f"an arrival too few, {r}": ((f"init {r}s_empty[1] count 4", f"init {r}s_empty[1] count 3"), True) for r in "KV"},
    **{f"released twice, {r}": ((FREE[r], FREE[r] * 2), True) for r in "KV"},
    **{f"nobody releases, {r}": ((FREE[r], ""), True) for r in "KV"},
    "nobody releases in the first turn": ((FIRST, ""), True),
    "released twice in the first turn": ((FIRST, FIRST * 2), True),
    # phases
    **{f"another slot is released, {r}": ((FREE[r], FREE[r].replace("kb + 1", "kb")), True) for r in "KV"},
    **{f"another slot is filled, {r}": ((EXPECT[r], EXPECT[r].replace("kb % 2", "(kb + 1) % 2")), True) for r in "KV"},
    **{f"another slot is waited for, {r}": ((USE[r], USE[r].replace("[((kb + 1) % 2)]", "[(kb % 2)]")), True) for r in "KV"},
    "another parity of empty slots, K": ((ACQUIRE["K"], ACQUIRE["K"].replace("((kb / 2) + 1)", "(kb / 2)")), True),
    "another parity of empty slots, V": ((ACQUIRE["V"], ACQUIRE["V"].replace("((kb + 1) / 2)", "(((kb + 1) / 2) + 1)")), True),
    "another parity of full slots, K": ((USE["K"], USE["K"].replace("(((kb + 1) / 2) + 1)", "((kb + 1) / 2)")), True),
    "another parity of full slots, V": ((USE["V"], USE["V"].replace("((kb / 2) + 1)", "(kb / 2)")), True),
    "another parity in the last turn": ((f"{LAST}", LAST.replace("((kb / 2) + 1)", "(kb / 2)")), True),
    # order
    **{f"no wait for an empty slot, {r}": ((ACQUIRE[r], ""), True) for r in "KV"},
    **{f"no wait for a full slot, {r}": ((USE[r], ""), True) for r in "KV"},
    **{f"filled before the wait, {r}": ((ACQUIRE[r] + EXPECT[r], EXPECT[r] + ACQUIRE[r]), True) for r in "KV"},
    "released before the wait, K": ((LEFT + FREE["K"], FREE["K"] + LEFT), True),
    "released before the wait, V": ((ALL + FREE["V"], FREE["V"] + ALL), True),
    "V released where K is": ((FREE["K"], FREE["K"] + FREE["V"]), True),
    "V released with K alone": (("", ""), True),
    "K released behind a wait that leaves both": ((LEFT, LEFT.replace("wait_warpgroup 1", "wait_warpgroup 2")), True),
    "K released by the barrier of V": ((FREE["K"], FREE["V"]), True),
    # registers
    "more registers than there are": (("registers 240 {", "registers 496 {"), False),
    "registers that are no eights": (("registers 24 {", "registers 20 {"), False),
    "registers of one role alone": ((" registers 24 {", " {"), False),
    # life
    "a barrier that nobody makes": ((line("mbarrier init Vs_empty[1]"), ""), True),
    "a barrier that is made twice": (("init Vs_empty[1]", "init Vs_empty[0]"), True),
    # roles
    "a barrier of the block": ((FREE["V"], FREE["V"] + " " * 20 + "barrier block\n"), False),
    "what all turns read is copied by nobody": ((ROW, ROW.replace("== 0:i32", "== 128:i32")), True),
}  # fmt: skip


def planted(name: str) -> k.Plan:
    (old, new), _ = BUGS[name]
    if name == "V released with K alone":
        text = TEXT.replace(FREE["V"], "", 1).replace(FREE["K"], FREE["K"] + FREE["V"], 1)
    else:
        assert old in TEXT, old
        text = TEXT.replace(old, new) if "registers" in old else TEXT.replace(old, new, 1)
    assert text != TEXT
    return parse_plan(text)


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert not is_proved(compiled("whole numbers"), lambda: planted(name))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, (_, is_shown) in BUGS.items() if is_shown])
def test_the_emulator_shows_it(name: str) -> None:
    case = "whole numbers"
    assert is_shown(compiled(case), parse(CASES[case].text)["f"], lambda: planted(name), 330, orders=9)


def test_there_are_many() -> None:
    assert len(BUGS) >= 35
