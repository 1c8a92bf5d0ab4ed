"""Rules of the kernel form that instructions of lanes keep, each with planted bugs that it catches."""

from __future__ import annotations

import pytest
from tests.instr.texts import CASES

from texpr.driver import lower
from texpr.frontend import parse
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.ir.ops.collective import (
    instruction_is_there,
    lanes_are_whole_groups,
    registers_are_those_of_the_operands,
)
from texpr.support.diagnostic import CompilerBug, TexprError

COLLECTIVE_RULES = (instruction_is_there, lanes_are_whole_groups, registers_are_those_of_the_operands)
USE = "instr mma_m16n8k16 [i, j, k] a[0] 8 read, b[0] 4 read, c[0] 4 update"
RULE = {
    "there": "instruction_is_there",
    "registers": "registers_are_those_of_the_operands",
    "groups": "lanes_are_whole_groups",
    "come": "all_come_who_must",
    "names": "names_differ",
}

BUGS = [
    ("registers", "there", USE, USE.replace("mma_m16n8k16", "mma"), "the kernel has no instruction mma"),
    ("registers", "there", USE, USE.replace(", c[0] 4 update", ""), "mma_m16n8k16 has 3 operands, not 2"),
    ("registers", "there", USE, USE.replace("[i, j, k]", "[i, j]"), "the meaning of mma_m16n8k16 has 3 loops, not 2"),
    ("warps", "there", USE.replace("[i", "[group, i"), USE, "the meaning of mma_m16n8k16 has 4 loops, not 3"),
    ("registers", "registers", USE, USE.replace("a[0] 8", "a[0] 4"), "is 8 of bf16, read, and is given 4 of bf16"),
    ("registers", "registers", USE, USE.replace("a[0] 8 read, b[0]", "b[0] 8 read, a[0]"), "b[0] and 7 more are not in it"),
    ("registers", "registers", USE, USE.replace("c[0] 4 update", "c[0] 4 write"), "and is given 4 of f32, write"),
    ("registers", "registers", USE, USE.replace("b[0] 4", "a[4] 4"), ""),
    ("registers", "registers", USE, USE.replace("c[0] 4 update", "a[0] 4 update"), "is given 4 of bf16, update"),
    ("registers", "registers", USE, USE.replace("c[0]", "c[1]"), "c[1] and 3 more are not in it"),
    ("registers", "registers", "array lanes a", "array local a", "a is in no registers that other lanes may read"),
    ("ldmatrix", "registers", "array shared S", "array lanes S", "S is in no shared memory, and `p` of ldmatrix_x4 is"),
    ("some warps", "groups", "first 32", "first 16", "16 threads are no groups of 32 lanes"),
    ("some warps", "groups", "first 32", "first 128", "128 threads are no groups of 32 lanes, or no whole warps of some"),
    ("registers", "groups", "axis block.x thread < 32", "axis block.x thread < 48", "48 threads are no groups of 32 lanes"),
    ("registers", "come", USE, f"if (i32(thread) < i32(31)) {{ {USE} }}", "32 lanes may part at the branch around it"),
    ("some warps", "come", "(i32((thread / 32)) < i32(1))", "(i32((thread / 16)) < i32(3))", "32 lanes may part at the branch"),
    ("registers", "names", "array lanes c", "array lanes mma_m16n8k16: f32[4] array lanes c", "stands for 2 things"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "rule", "old", "new", "message"), BUGS)
def test_planted_bugs_are_caught(case: str, rule: str, old: str, new: str, message: str) -> None:
    made = lower(parse(CASES[case].text, "case.te")[CASES[case].name], "sm_80", schedule=None)
    text = plan_text(made.plan)
    assert old in text, text
    if not message:  # nothing is wrong: other registers of one array
        verify(parse_plan(text.replace(old, new)))
        return
    with pytest.raises(CompilerBug) as caught:
        verify(parse_plan(text.replace(old, new)))
    assert f"{RULE[rule]}: " in str(caught.value) and message in str(caught.value), caught.value


def test_every_rule_is_tried() -> None:
    assert {RULE[rule] for _, rule, *_ in BUGS} >= {rule.__name__ for rule in COLLECTIVE_RULES}


NO_PLANS = [
    ("read fragment", "eaten fragment", "`eaten` is no access"),
    ("(2@1,1@0),(1@1,8@0,8@1)", "(2@1,1@0),(1@1,8@0,4@1)", "overlap at 4"),
    ("a[0] 8 read,", "a[0] 8 eaten,", "`eaten` is no access"),
    ("        means {", "        sense {", "expected `means`"),
]


@pytest.mark.parametrize(("old", "new", "message"), NO_PLANS)
def test_texts_that_describe_no_plan(old: str, new: str, message: str) -> None:
    made = lower(parse(CASES["registers"].text, "case.te")["product"], "sm_80", schedule=None)
    text = plan_text(made.plan)
    assert old in text, text
    with pytest.raises(TexprError) as caught:
        parse_plan(text.replace(old, new, 1))
    (found,) = caught.value.diagnostics
    assert found.code == "E0581" and message in found.message, found.message
