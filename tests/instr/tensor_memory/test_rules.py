"""What the verifier of kernels asks of the operations on tensor memory: each rule is broken once."""

from __future__ import annotations

import re

import pytest
from tests.instr.tensor_memory import scaled
from tests.instr.tensor_memory.texts import compiled

from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.support.diagnostic import CompilerBug

BROKEN = {
    "columns_exist": (r"count 64", "count 48", "48 columns are no power of two from 32 to 512"),
    "columns_are_taken": (r" +columns have .*\n", "", "does not take columns, know them, and give them back, each once"),
    "fence_is_of_columns": (r"columns fence after", "columns fence beside", "there is no fence beside"),
    "product_is_committed": (r" +columns commit .*\n", "", "commits nothing of what it launches"),
    "one_thread_launches": (r"\[i_1, j_1, k\]", "[i_1, j_1, k] first 64", "is of 128 lanes, and one thread launches it"),
    "tensor_memory_is_taken": (
        r" +columns (take|have|free) .*\n",
        "",
        "lies in tensor memory, and the kernel takes no columns",
    ),
}
"""By rule: what is replaced in the plan, by what, and what is said."""

MORE = (
    (r"total: f32\[64\] from 0", "total: f32[64] from 8", "total lies in columns 8 to 72, and 64 are taken"),
    (r"total: f32\[64\] from 0", "total: f32[64]", "total is no columns of 32 bits"),
    (r"columns free 64", "columns free 32", "gives back another number of columns than it took"),
    (r"array tensor total: f32\[64\] from 0", "array lanes total: f32[64]", "is in no tensor memory"),
    (r"thread < 128", "thread < 256", "256 threads have no lane of tensor memory each"),
)


SCALES = {
    "scales_are_copied_alike": (
        r"a_s_t\[4 \* k_i_o\] 4 read",
        "a_s_t[4 * k_i_o + 1] 4 read",
        "scales of a_s_t are copied 1 ways, or from elsewhere than",
    ),
}
"""The same of products with scales."""


@pytest.mark.parametrize("rule", SCALES)
def test_each_rule_of_scales(rule: str) -> None:
    old, new, said = SCALES[rule]
    text = plan_text(scaled.compiled("in turn").plan)
    edited = re.sub(old, new, text)
    assert edited != text
    with pytest.raises(CompilerBug, match=f"{rule}: .*{re.escape(said)}"):
        verify(parse_plan(edited))


@pytest.mark.parametrize(("old", "new", "said"), [*BROKEN.values(), *MORE])
def test_each_rule(old: str, new: str, said: str) -> None:
    text = plan_text(compiled("ring").plan)
    edited = re.sub(old, new, text)
    assert edited != text
    with pytest.raises(CompilerBug, match=re.escape(said)):
        verify(parse_plan(edited))
