"""Rows through two products of a warpgroup, of which the second runs a turn late, while lanes work on what the first left."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest
from bench.common.attention import online
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.proofs import undecided
from tests.schedule.linked import by_warpgroups, exact
from tests.schedule.rows import differences, open_of
from tests.schedule.test_linked import Case

from texpr.driver import Compiled, lower, parse
from texpr.ir.kernel.text import plan_text
from texpr.toolchain.cuda import CudaBinary

WIDE = " align(16)"
MORE = "pipeline(kb, stages=2)\n    overlap(kb, dv, behind=js)"

CASES = {
    "whole numbers": Case(exact(64, 64, WIDE) + by_warpgroups(last="r_9", more=MORE)),
    "two warpgroups": Case(exact(64, 64, WIDE) + by_warpgroups(last="r_9", rows=128, more=MORE)),
    "rows of two boxes": Case(exact(128, 64, WIDE) + by_warpgroups(128, last="r_9", more=MORE)),
    "a ring of three": Case(exact(64, 64, WIDE) + by_warpgroups(last="r_9", more=MORE.replace("=2", "=3"))),
    "no ring": Case(exact(64, 64, WIDE) + by_warpgroups(last="r_9", more="overlap(kb, dv, behind=js)")),
    "online, of f16": Case(online("f16", 64, 64, align=WIDE) + by_warpgroups(of="f16", more=MORE), apart=2**-10),
    "causal, two warpgroups": Case(
        online(d=128, keys=64, causal=True, align=WIDE, block=128) + by_warpgroups(128, rows=128, more=MORE), apart=2**-7
    ),
}  # fmt: skip

LENGTHS = (0, 1, 64, 65, 130, 200)
"""Of 0 to 4 turns, which an empty, an odd, and an even number of whole blocks of keys have, and ragged ones."""


@cache
def compiled(name: str) -> Compiled:
    function = parse(CASES[name].text)["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str, length: int) -> None:
    case, made = CASES[name], compiled(name)
    assert differences(made, parse(case.text)["f"], {"L": length}, case.apart) == []


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    """For all sizes."""
    assert open_of(compiled(name)) == []


@pytest.mark.parametrize("sizes", [{"H": 2, "L": 64}, {"H": 2, "L": 4096}, {"L": 100}], ids=str)
def test_of_sizes_that_a_build_fixes(sizes: dict[str, int]) -> None:
    function = parse(CASES["whole numbers"].text)["f"]
    made = lower(function, "sm_90a", sizes, schedule=function.schedules[0])
    assert list(undecided(made.function, made.plan)) == []


def test_the_late_product_is_left() -> None:
    """Behind the first product of a turn, and behind the second one of the turn before, which goes on."""
    text = plan_text(compiled("whole numbers").plan)
    _, steady = text.split("if decided_11 uniform {")
    steady, start = steady.split("\n                } else {", 1)
    words = r"(start instr \w+|commit_warpgroup|wait_warpgroup \d holds \w)"
    assert re.findall(words, steady) == [
        "start instr wgmma_m64n64k16_f32_bf16", "commit_warpgroup",
        "start instr wgmma_m64n64k16_f32_bf16_ar_bn", "commit_warpgroup",
        "wait_warpgroup 1 holds s", "wait_warpgroup 0 holds p",
    ]  # fmt: skip
    assert re.findall(words, start)[:3] == [
        "start instr wgmma_m64n64k16_f32_bf16", "commit_warpgroup", "wait_warpgroup 0 holds s"
    ]  # fmt: skip
    assert text.count("barrier block") == 2  # one before the loop, and one in each turn


def test_choices_that_turns_decide_are_not_made() -> None:
    """Of whole blocks of keys none is beyond the last."""
    function = parse(CASES["whole numbers"].text)["f"]
    made = lower(function, "sm_90a", {"H": 1, "L": 4096}, schedule=function.schedules[0])
    assert "select" not in plan_text(made.plan)


SIZES: Mapping[str, Mapping[str, int]] = {"open sizes": {}, "fixed sizes": {"H": 64, "L": 4096}}


@cache
def binary(name: str, sizes: str) -> CudaBinary:
    """A case compiled by nvcc."""
    function = parse(CASES[name].text)["f"]
    made = lower(function, "sm_90a", SIZES[sizes], schedule=function.schedules[0])
    return built(made.source)


BUILT = [("whole numbers", "open sizes"), ("rows of two boxes", "open sizes"), ("causal, two warpgroups", "open sizes"),
         ("rows of two boxes", "fixed sizes")]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes"), BUILT)
def test_ptxas_keeps_it(name: str, sizes: str) -> None:
    """Nothing spills, and ptxas does not wait by itself (C7510 and others)."""
    assert spills_nothing(binary(name, sizes)) and not serialised(binary(name, sizes))


LINE = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?([A-Z0-9.]+[^;]*);", re.MULTILINE)


def code(name: str, sizes: str) -> list[str]:
    """The machine code, an instruction each."""
    return LINE.findall(code_of(binary(name, sizes)))


@pytest.mark.parametrize(("name", "sizes"), BUILT)
def test_lanes_work_between_a_product_and_its_wait(name: str, sizes: str) -> None:
    """In the steady turn: both products, a wait that leaves one, what lanes do, a wait for all. How much of it, ptxas decides:
    what does not depend on a wait may come behind it."""
    kinds = " ".join(kind(line) for line in code(name, sizes))
    (steady,) = re.findall(r"S (?:[oA] )*L (?:[LoA] )*D1 ([oe ]*)D ", kinds)
    assert len(steady.split()) >= 32


def kind(line: str) -> str:
    """What an instruction is: a product of shared matrices, or with what lanes lend; a fence; a wait; an exponential."""
    if line.startswith("HGMMA"):
        return "L" if re.search(r"R\d+, R\d+, gdesc", line) else "S"
    if line.startswith("WARPGROUP"):
        return "A" if "ARRIVE" in line else f"D{int(line.split('0x')[-1], 16) or ''}"
    return "e" if line.startswith("MUFU.EX2") else "o"


@pytest.mark.parametrize(("name", "sizes"), BUILT)
def test_nothing_touches_registers_of_a_product_that_goes_on(name: str, sizes: str) -> None:
    assert meddling(code(name, sizes)) == []


PRODUCTS = [
    "HGMMA.64x64x16.F32.BF16 R24, gdesc[UR4], R24, gsb0", "HGMMA.64x64x16.F32.BF16 R56, R88, gdesc[UR8].tnspB, R56, gsb0",
    "WARPGROUP.DEPBAR.LE gsb0, 0x1", "FADD R24, R24, R3", "WARPGROUP.DEPBAR.LE gsb0, 0x0", "FADD R56, R56, R88",
]  # fmt: skip

TOO_EARLY = {
    "what is summed up": (3, "FADD R3, R57, R3"), "what is lent": (4, "MOV R90, R3"),
    "scores": (2, "FADD R4, R55, R3"), "a wide one": (4, "LDS.128 R86, [R3]"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_EARLY)
def test_what_touches_them_is_seen(name: str) -> None:
    at, line = TOO_EARLY[name]
    assert meddling(PRODUCTS) == []
    found = meddling([*PRODUCTS[:at], line, *PRODUCTS[at:]])
    assert len(found) == 1 and line in found[0]


def meddling(lines: list[str]) -> list[str]:
    """What touches registers of a product, in the order of addresses, before the wait that leaves no later group."""
    found: list[str] = []
    for at, line in enumerate(lines):
        if kind(line) in "SL":
            mine = held(line)
            for other in until_waited(lines[at:], groups=0):
                if kind(other) not in "SL" and mine & touched(other):
                    found.append(f"{line} / {other}")
    return found


def until_waited(lines: list[str], groups: int) -> Iterator[str]:
    """What is behind a product, until a wait that leaves fewer groups than ended since its own."""
    ended = groups
    for line in lines:
        if line.startswith("HGMMA") and "gsb0" in line:
            ended += 1
        if line.startswith("WARPGROUP.DEPBAR") and int(line.split("0x")[-1], 16) < max(ended, 1):
            return
        if line.startswith("EXIT"):
            return
        yield line


WIDTHS = {"64": 2, "128": 4}


def registers(first: str, count: int) -> set[int]:
    return set(range(int(first), int(first) + count))


def held(line: str) -> set[int]:
    """The registers of a product: what it sums up, and what lanes lend."""
    columns = int(re.findall(r"HGMMA\.64x(\d+)x", line)[0])
    sums = re.findall(r"HGMMA\S* R(\d+)", line)
    lent = re.findall(r"R\d+, R(\d+), gdesc", line)
    return registers(sums[0], columns // 2).union(*(registers(each, 4) for each in lent))


def touched(line: str) -> set[int]:
    """The registers that an instruction names, those behind the first of a wide one among them."""
    wide = max((many for word, many in WIDTHS.items() if re.search(rf"\.{word}\b", line.split(" ")[0])), default=1)
    return set[int]().union(*(registers(each, wide) for each in re.findall(r"\bR(\d+)\b", line)))
