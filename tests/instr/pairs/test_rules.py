"""What the verifier of kernels asks where pairs of blocks multiply: each rule is broken once at least."""

from __future__ import annotations

import re

import pytest
from tests.instr.pairs.texts import compiled

from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.tile_verify import TILE_HEAD_RULES
from texpr.ir.kernel.verify import verify_kernel
from texpr.support.diagnostic import CompilerBug

BROKEN = {
    "pairs_are_of_two_blocks": (
        r"columns commit (.*) pair",
        r"columns commit \1",
        "some of what is done in tensor memory",
    ),
    "halves_are_of_pairs": (r" to \[0, 1\] from 0 led", " led", "B_s is in halves, and is touched by what is not for both"),
    "led_copies_are_of_pairs": (r"axis cluster.y i_b_rank < 2", "axis cluster.y i_b_rank < 4", "in a cluster of 4"),
}
"""By rule: what is replaced in the plan, by what, and what is said."""

MORE = (
    (r"at 1024 halved 1 ", "at 1024 halved 7 ", "B_s has no halves along dimension 7"),
    (r"at 1024 halved 1 ", "at 1024 ", "is read in halves, or lies in halves, and not both"),
    (r"B_s\[\(\(k_o \+ 2\) % 4\), 0, 2", "B_s[((k_o + 2) % 4), 8, 2", "`b` begins within a half of B_s"),
    (r"axis cluster.y i_b_rank < 2", "axis cluster.y i_b_rank < 4", "a pair of blocks is a cluster of 2, and this one has 4"),
)


@pytest.mark.parametrize(("old", "new", "told"), [*BROKEN.values(), *MORE])
def test_each_rule_is_asked(old: str, new: str, told: str) -> None:
    broken, count = re.subn(old, new, plan_text(compiled("late").plan))
    assert count
    kernel = next(k.kernels(parse_plan(broken).steps))
    assert any(told in complaint for rule in TILE_HEAD_RULES for complaint in rule(kernel))
    with pytest.raises(CompilerBug):
        verify_kernel(kernel)


@pytest.mark.parametrize("rule", BROKEN)
def test_that_rule_says_so(rule: str) -> None:
    old, new, told = BROKEN[rule]
    kernel = next(k.kernels(parse_plan(re.sub(old, new, plan_text(compiled("late").plan))).steps))
    (asked,) = (each for each in TILE_HEAD_RULES if each.__name__ == rule)
    assert any(told in complaint for complaint in asked(kernel))
