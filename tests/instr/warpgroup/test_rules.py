"""What the verifier of kernels asks of the operations of a warpgroup: each rule is broken once."""

from __future__ import annotations

import re

import pytest
from tests.instr.warpgroup.test_warpgroup import compiled

from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.support.diagnostic import CompilerBug

BROKEN = {
    "held_is_in_registers": (r"fence_warpgroup d\[0\]", "fence_warpgroup d[1]", "are not in it"),
    "groups_that_are_left": (r"wait_warpgroup 0", "wait_warpgroup 9", "9 groups cannot be left"),
    "warpgroups_are_whole": (r"thread < 128", "thread < 160", "160 threads are no warpgroups"),
    "descriptors_have_their_fields": (r"\(128, 16, 1024\)", "(128, 16, 1028)", "no distances that a descriptor can have"),
    "group_is_closed_and_waited_for": (r" +wait_warpgroup .*\n", "", "waits for no groups of what it starts"),
}
"""By rule: what is replaced in the plan, by what, and what is said."""


def test_the_plan_is_right() -> None:
    verify(parse_plan(plan_text(compiled("n8").plan)))


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule(rule: str) -> None:
    old, new, said = BROKEN[rule]
    text = plan_text(compiled("n8").plan)
    edited = re.sub(old, new, text)
    assert edited != text
    with pytest.raises(CompilerBug, match=re.escape(said)):
        verify(parse_plan(edited))
