"""What a plan only says of itself decides nothing: dependences that waits cover, lines of the text, reasons, and marks of
loops that are unrolled. Without them what was proved is proved, and no bug is.

Names of an instruction's loops guide the search for witnesses: with other names it may find none of what is right, but no bug
is proved. That all lanes go through a branch alike is no hint: it is what a kernel claims, and is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pytest
from tests.instr import test_planted as warps
from tests.instr.warpgroup import test_planted as groups
from tests.planner import test_promoted as promoted
from tests.planner import test_warpgroups as automatic
from tests.planner import test_warpgroups_planted as rings
from tests.proofs import undecided

from texpr.driver import Compiled
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text

SAID = (
    re.compile(r"  -- line \d+(?:, column \d+)?$", re.MULTILINE),
    re.compile(r" covers .*$", re.MULTILINE),
    re.compile(r'(?<=\]|\d) "[^"]*"$', re.MULTILINE),
    re.compile(r" unroll(?: \d+)?(?= \{)"),
)
NAMES = re.compile(r"(instr \w+ )\[([^\]]*)\]")


def bare(plan: k.Plan) -> str:
    """The text of a plan without what it says of itself."""
    text = plan_text(plan)
    for pattern in SAID:
        text = pattern.sub("", text)
    return text


def stripped(plan: k.Plan) -> k.Plan:
    """The plan of that text."""
    return parse_plan(bare(plan))


def misnamed(plan: k.Plan) -> k.Plan:
    """The same, whose instructions have other names for the loops of the program."""

    def others(found: re.Match[str]) -> str:
        return f"{found[1]}[{', '.join(f'q{number}' for number, _ in enumerate(found[2].split(',')))}]"

    return parse_plan(NAMES.sub(others, bare(plan)))


def in_a_ring() -> Compiled:
    return automatic.compiled("rows of both", automatic.CASES["rows of both"].sizes[0])


RIGHT: dict[str, Callable[[], Compiled]] = {
    **{f"warps: {case}": lambda case=case: warps.compiled(case) for case in {bug.case for bug in warps.BUGS.values()}},
    **{f"groups: {case}": lambda case=case: groups.compiled(case) for case in {bug.case for bug in groups.BUGS.values()}},
    **{f"parts: {case}": lambda case=case: promoted.compiled(case) for case in promoted.CASES},
    "a ring": in_a_ring,
}
Wrong = tuple[Callable[[], Compiled], Callable[[], k.Plan]]
WRONG: dict[str, Wrong] = {
    **{
        f"warps: {name}": (lambda bug=bug: warps.compiled(bug.case), lambda bug=bug: warps.planted(bug))
        for name, bug in warps.BUGS.items()
    },
    **{
        f"groups: {name}": (lambda bug=bug: groups.compiled(bug.case), lambda bug=bug: groups.planted(bug))
        for name, bug in groups.BUGS.items()
    },
    **{f"ring: {name}": (in_a_ring, lambda bug=bug: rings.planted(bug)) for name, bug in rings.BUGS.items()},
    **{
        f"parts: {name}": (lambda: promoted.compiled("one sum"), lambda name=name: parse_plan(promoted.planted(name)))
        for name in promoted.BUGS
    },
}


@cache
def right(name: str) -> Compiled:
    return RIGHT[name]()


def test_all_of_it_goes() -> None:
    before, after = plan_text(in_a_ring().plan), bare(in_a_ring().plan)
    said = re.compile(r"-- line|covers| unroll|the schedule places it there|has landed")
    assert len(said.findall(before)) > 30 and said.findall(after) == []
    assert "[q0, q1, q2, q3]" in plan_text(misnamed(promoted.compiled("one sum").plan))


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_what_is_right_is_proved_without_a_word(name: str) -> None:
    made = right(name)
    assert [*undecided(made.function, stripped(made.plan))] == []


@pytest.mark.planted
@pytest.mark.parametrize("name", WRONG)
def test_no_bug_is_proved_without_a_word(name: str) -> None:
    made, planted = WRONG[name]
    plan = planted()
    assert [*undecided(made().function, stripped(plan))]
    assert [*undecided(made().function, misnamed(plan))]


def test_there_are_many() -> None:
    assert len(WRONG) >= 150


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if decided_6 uniform {", "if (i32(thread) < i32(96)) uniform {"),
        ("for k_i_o in 0..4 uniform {", "for k_i_o in 0..(thread / 128) + 4 uniform {"),
        ("for k_o in 0..((K + 127) / 128) + 3 uniform", "for k_o in 0..((K + 127) / 128) + (thread / 128) + 3 uniform"),
    ],
)
def test_a_mark_is_not_believed(old: str, new: str) -> None:
    """That all lanes go through a branch, or a loop, alike."""
    made = promoted.compiled("one sum")
    text = plan_text(made.plan)
    old = old.replace("decided_6", re.findall(r"if (decided_\d+) uniform", text)[-1])
    assert old in text
    assert [*undecided(made.function, parse_plan(text.replace(old, new)))]
