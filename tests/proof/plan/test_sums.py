"""Sums in parts: bugs of their kind, put into the text of kernels, are refused; what is right in another way is proved."""

import re
from pathlib import Path

import pytest
from tests.proof.plan.verdicts import open_of

from texpr import driver
from texpr.frontend import parse
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.proof.plan import Verdict
from texpr.proof.search import proved

EXAMPLES = Path(__file__).parents[3] / "examples"

Changes = tuple[tuple[str, str], ...]

ONE_BY_ONE = ("ONE BY ONE", "")
"""Lanes are joined by one exchange behind the other, not in a loop."""

ALL = "for warp in 1..8 unroll {"
BLOCK = "i in thread..min(-4096 * i_block + n, 4096) by 256 {"

JOIN = "        total_own = (total_own + total_own_other)  -- line 5\n"

TAKEN = "i_part in thread..((n + 4095) / 4096)"

TOP, AT = "top_block_own_all", "at_block_own_all"

TUPLE = (
    f"    if ((({TOP} > top_block) or (isnan({TOP}) and not(isnan(top_block)))) or ((({TOP} == top_block) or "
    f"(isnan({TOP}) and isnan(top_block))) and ({AT} < at_block))) {{  -- line 7\n"
    f"        top_block = {TOP}  -- line 7\n        at_block = {AT}  -- line 7\n    }}\n"
)

WRONG: dict[str, tuple[str, str, Changes]] = {
    "a tuple starts at another value": ("argmax", "sm_90a", (("at_block_own: i32 = 2147", "at_block_own: i32 = -2147"),)),
    "a tuple in which the index decides": (
        "argmax",
        "sm_90a",
        ((TUPLE, f"    if (({AT} > at_block) or (({AT} == at_block) and ({TOP} < top_block))) {{\n"
                 f"        at_block = {AT}\n        top_block = {TOP}\n    }}\n"),),
    ),
    "elements of a tuple that are joined one by one": (
        "argmax", "sm_90a", ((TUPLE, f"    top_block = max(top_block, {TOP})\n    at_block = max(at_block, {AT})\n"),)
    ),
    "an index that is joined on its own": (
        "argmax", "sm_90a", ((TUPLE, TUPLE + f"    at_block = max(at_block, {AT})\n"),)
    ),
    "lanes exchange other elements of a tuple": (
        "argmax",
        "sm_90a",
        (ONE_BY_ONE, ("at_block_own_xor16 = at_block_own ^ 16", "at_block_own_xor16 = at_block_own ^ 8"),
         ("at_block_own_xor8 = at_block_own ^ 8", "at_block_own_xor8 = at_block_own ^ 16")),
    ),
    "a tuple is kept in two orders": (
        "argmax",
        "sm_90a",
        (("at_block_own_warps[warp]", "at_block_own_warps[-1 * warp + 8]"),),
    ),
    "parts of a tuple are stored in two orders": (
        "argmax", "sm_90a", (("at_parts[i_part]", "at_parts[-1 * i_part + ((n + 4095) / 4096) - 1]"),)
    ),
    "lanes are joined twice": ("sum", "sm_90a", (ONE_BY_ONE, ("total_own ^ 8", "total_own ^ 16"),)),
    "a maximum of half of the lanes": ("softmax", "sm_90a", (ONE_BY_ONE, ("top_own ^ 8", "top_own ^ 16"),)),
    "a maximum without the lane beside": ("softmax", "sm_90a", (ONE_BY_ONE, ("top_own ^ 1 ", "top_own ^ 16 "),)),
    "a loop over lanes that goes by 16 each time": ("sum", "sm_90a", (("^ 16 shift step", "^ 16"),)),
    "a loop over lanes that leaves the one beside": ("sum", "sm_90a", (("step in 0..5", "step in 0..4"),)),
    "a loop over lanes of half a warp": ("sum", "sm_90a", (("step in 0..5", "step in 0..4"), ("^ 16 shift", "^ 8 shift"))),
    "a loop over lanes in which some join": (
        "sum", "sm_90a", ((JOIN, f"        if (i32((thread % 2)) == 0:i32) {{ {JOIN} }}\n"),)
    ),
    "a loop over lanes that joins twice": ("sum", "sm_90a", ((JOIN, JOIN + JOIN),)),
    "a loop over lanes that data decides on": (
        "sum", "sm_90a", ((JOIN, f"        if (total_own_other > 0:f32) {{ {JOIN} }}\n"),)
    ),
    "an update in a loop over lanes": (
        "sum", "sm_90a", ((JOIN, JOIN + "        total_own = (total_own + total_parts[thread])\n"),)
    ),
    "two loops over lanes": (
        "sum",
        "sm_90a",
        ((JOIN, f"{JOIN}    }}\n    for again in 0..5 unroll {{\n"
          f"        exchange total_own_more = total_own ^ 16 shift again\n{JOIN.replace('other', 'more')}"),),
    ),
    "parts are read before they are stored": (
        "sum", "sm_90a", (("launch sum_total_parts\n    launch sum_total\n", "launch sum_total\n    launch sum_total_parts\n"),)
    ),
    "what an earlier turn left": (
        "attention",
        "sm_90a",
        (("        let score_own: f32 = 0:f32  -- line 15\n", ""),
         ("    for j in 0..i + 1 uniform {", "    let score_own: f32 = 0:f32  -- line 15\n    for j in 0..i + 1 uniform {")),
    ),
    "two sums in one array": ("layernorm", "sm_90a", (("square_own_warps", "total_own_warps"), ("TWICE", ""))),
    "one sum for another": ("layernorm", "sm_90a", (("(square + square_own_all)", "(square + total_own_all)"),)),
    "a join that data decides on": (
        "sum",
        "sm_90a",
        (("    total_block = (total_block + total_block_own_all)",
          "    if (total_block_own_all > 0:f32) { total_block = (total_block + total_block_own_all) }"),),
    ),
    "a stored part that data decides on": (
        "sum",
        "sm_90a",
        (("        total_own = (total_own + total_parts[i_part])",
          "        if (total_parts[i_part] > 0:f32) { total_own = (total_own + total_parts[i_part]) }"),),
    ),
    "a stored sum that data decides on": (
        "sum",
        "sm_90a",
        (("        total[] = (total[] + total_own_all)",
          "        if (total_own_all > 0:f32) { total[] = (total[] + total_own_all) }"),),
    ),
    "a part that is stored where data says": (
        "sum", "sm_90a", (("total_parts[i_block] = total_block", "if (x[0] > 0:f32) { total_parts[i_block] = total_block }"),)
    ),
    "a part that is taken twice": ("sum", "sm_90a", ((f"{TAKEN} by 256", f"{TAKEN} by 128"),)),
    "a part that nobody takes": ("sum", "sm_90a", ((TAKEN, f"{TAKEN} - 1"),)),
    "parts of two blocks in one place": ("sum", "sm_90a", (("total_parts[i_block]", "total_parts[(i_block / 2)]"),)),
    "a part in two places": (
        "sum",
        "sm_90a",
        (("total_parts: f32[((n + 4095) / 4096)]", "total_parts: f32[2 * ((n + 4095) / 4096)]"),
         ("total_parts[i_block] = total_block",
          "for twice in 0..2 { total_parts[i_block + twice * ((n + 4095) / 4096)] = total_block }"),
         (TAKEN, "i_part in thread..2 * ((n + 4095) / 4096)")),
    ),
    "a part that is stored twice": (
        "sum",
        "sm_90a",
        (("total_parts[i_block] = total_block",
          "total_parts[i_block] = total_block_own_all\n        total_parts[i_block] = total_block_own"),),
    ),
    "an update in two parts": (
        "sum",
        "sm_90a",
        ((BLOCK, BLOCK + "\n        total_block = (total_block + x[i + 4096 * i_block])"),),
    ),
    "an update in two parts of one thread": (
        "sum",
        "cpu",
        (("    let total_block_lanes_all: f32 = total_block_lanes[0]",
          "    for i_twice in 16 * (min(-65536 * i_block + n, 65536) / 16)..min(-65536 * i_block + n, 65536) {  -- line 5\n"
          "        total_block = (total_block + x[i_twice + 65536 * i_block])  -- line 5\n    }\n"
          "    let total_block_lanes_all: f32 = total_block_lanes[0]"),),
    ),
    "an update of what was there before all": (
        "sum",
        "sm_90a",
        ((f"    for {BLOCK}", f"    let before: f32 = total_block_own\n    for {BLOCK}"),
         ("total_block_own = (total_block_own + x[", "total_block_own = (before + x[")),
    ),
    "a sum that starts in each turn": ("sum", "sm_90a", ((BLOCK, BLOCK + "\n        total_block_own = 0:f32"),)),
    "lanes that start in each turn": (
        "sum",
        "cpu",
        (("for lane_1 in 0..16 simd {  -- line 5\n                    total_block",
          "for lane_1 in 0..16 simd {\n total_block_lanes[16 * i_stream + lane_1] = 0:f32\n total_block"),),
    ),
    "what was read before it was whole": (
        "sum",
        "sm_90a",
        (ONE_BY_ONE, ("    exchange total_own_xor1 ", "    let early: f32 = total_own\n    exchange total_own_xor1 "),
         ("total_own_warps[(thread / 32)] = total_own ", "total_own_warps[(thread / 32)] = early ")),
    ),
    "a warp of half its lanes": ("sum", "sm_90a", (("thread < 256", "thread < 240"),)),
    "a part that is never joined": (
        "sum", "sm_90a", (("(total_block + total_block_own_all)", "(total_block + total_block_own)"),)
    ),
    "read while it is summed": (
        "sum",
        "sm_90a",
        (("        total_block_own_all = (total_block_own_all +",
          "        total_block = (total_block + total_block_own_all)\n        total_block_own_all = (total_block_own_all +"),
         ("    total_block = (total_block + total_block_own_all)  -- line 5\n    if", "    if")),
    ),
}  # fmt: skip


def one_by_one(loop: re.Match[str]) -> str:
    """What a loop that joins lanes does in each of its turns."""
    turns = (loop[1].replace("^ 16 shift step", f"^ {16 >> step}").replace("_other", f"_xor{16 >> step}") for step in range(5))
    return "".join(turns)


def is_proved(name: str, target: str, changes: Changes) -> bool:
    (function,) = driver.load(EXAMPLES / f"{name}.te").functions
    compiled = driver.lower(function, target)
    text = plan_text(compiled.plan).replace(" dependent\n", "\n")
    for old, new in changes:
        if old == "ONE BY ONE":
            text = re.sub(r" *for step in 0\.\.5 unroll \{.*\n((?:.*\n)*?)    \}\n(?=    \S)", one_by_one, text)
        elif old != "TWICE":
            assert old in text, old
            text = text.replace(old, new)
    if ("TWICE", "") in changes:  # an array that is declared twice
        lines = text.splitlines()
        declared = [at for at, line in enumerate(lines) if "array shared" in line]
        text = "\n".join(line for at, line in enumerate(lines) if at not in declared[1:])
    counts = proved(compiled.function, parse_plan(text)).counts
    return not counts["refused"] and not counts["undecided"]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_sums_are_not_proved(name: str) -> None:
    program, target, changes = WRONG[name]
    assert not is_proved(program, target, changes)


RIGHT: dict[str, tuple[str, str, Changes]] = {
    "unchanged": ("layernorm", "sm_90a", ()),
    "lanes in another order": (
        "sum",
        "sm_90a",
        (ONE_BY_ONE, ("total_own ^ 16", "total_own ^ 3"), ("total_own ^ 1 ", "total_own ^ 16 "),
         ("total_own ^ 3", "total_own ^ 1")),
    ),
    "two sums in one array, one behind the other": (
        "layernorm",
        "sm_90a",
        (("square_own_warps", "total_own_warps"),
         ("    let square_own: f32", "    barrier block covers WAR \"partial values\"\n    let square_own: f32"),
         ("TWICE", "")),
    ),
    "a maximum that takes a lane twice": (
        "softmax",
        "sm_90a",
        (ONE_BY_ONE, ("    exchange top_own_xor1 ", "    top_own = max(top_own, top_own_xor2)\n    exchange top_own_xor1 "),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_other_right_sums_are_proved(name: str) -> None:
    program, target, changes = RIGHT[name]
    assert is_proved(program, target, changes)


@pytest.mark.planted
def test_a_sum_of_nothing_is_joined_with_an_element_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """That subscripts of the program are in bounds says nothing of iterations without an update."""
    text = "fn f(x: f32[n, n], inout y: f32[n]) { par n + 1 |i| { par i |j| reduce(y) { y[i - 1] += x[i - 1, j] } } }"
    function = parse(text)["f"]
    assert open_of(proved(function, lower(function, resolve("sm_90a"), {})[0])) == []
    monkeypatch.setattr("texpr.mapping.reductions.ways.team.where_reached", lambda *given: given[-1])
    refused = proved(function, lower(function, resolve("sm_90a"), {})[0]).of(Verdict.REFUSED)
    assert [each.what for each in refused] == ["in bounds"]
