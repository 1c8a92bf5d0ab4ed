"""What nvcc makes of products in tensor memory: one instruction for each that is launched, and nothing spilled."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.instr.tensor_memory import scaled
from tests.instr.tensor_memory.test_operand_there import attention
from tests.instr.tensor_memory.texts import compiled
from tests.machine_code import built, code_of, spills_nothing

from texpr.ir import kernel as k

MADE = [
    ("ring", "UTCHMMA"),
    pytest.param("n256", "UTCHMMA", marks=pytest.mark.long),
    pytest.param("tf32", "UTCHMMA", marks=pytest.mark.long),
    pytest.param("f8e4m3", "UTCQMMA", marks=pytest.mark.long),
    pytest.param("i8", "UTCIMMA", marks=pytest.mark.long),
]
"""The instruction of a case."""


@pytest.mark.parametrize(("name", "instruction"), MADE)
def test_products_are_as_planned(name: str, instruction: str) -> None:
    """Four a turn, as often as the loop around is written out, with one arrival each time; loads and stores of columns."""
    made = compiled(name)
    (kernel,) = k.kernels(made.plan.steps)
    moves = [op.name for op in k.walk(kernel.body) if isinstance(op, k.Collective) and not isinstance(op, k.CollectiveAlone)]
    binary = built(made.source, "sm_100a")
    assert spills_nothing(binary)
    found = Counter(re.findall(r"\b(UTC\w+|LDTM|STTM)[ .]", code_of(binary)))
    assert found[instruction] == 4 * found["UTCBAR"] > 0
    assert sum(count for each, count in found.items() if each.endswith("MMA")) == found[instruction]
    for way, code in (("_ld_", "LDTM"), ("_st_", "STTM")):
        assert sum(way in each for each in moves) == 1 and found[code] >= 1


def test_scales_are_copied_and_read() -> None:
    """Two copies and four products a turn, with columns of scales, and one arrival."""
    binary = built(scaled.compiled("late").source, "sm_100a")
    assert spills_nothing(binary)
    found = Counter(re.findall(r"\b(UTC\w+)[ .]", code_of(binary)))
    assert (found["UTCQMMA"], found["UTCCP"]) == (4 * found["UTCBAR"], 2 * found["UTCBAR"]) and found["UTCBAR"] > 0


def test_attention_has_both_products_in_tensor_memory() -> None:
    """Four products of descriptors, four of columns and descriptors, and as many columns moved as are planned."""
    binary = built(attention().source, "sm_100a")
    assert spills_nothing(binary)
    code = code_of(binary)
    assert [len(re.findall(rf"UTCHMMA {first}\[", code)) for first in ("gdesc", "tmem")] == [4, 4]
    assert len(re.findall(r"\bUTCBAR ", code)) == 2
