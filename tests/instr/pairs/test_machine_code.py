"""What nvcc makes of products of pairs of blocks: as many instructions of two blocks as are planned, and nothing spilled."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.instr.pairs.texts import compiled
from tests.machine_code import built, code_of, spills_nothing

MADE = [
    ("late", "UTCHMMA"),
    pytest.param("wide", "UTCHMMA", marks=pytest.mark.long),
    pytest.param("tf32", "UTCHMMA", marks=pytest.mark.long),
    pytest.param("f8e4m3", "UTCQMMA", marks=pytest.mark.long),
]
"""The instruction of a case."""


@pytest.mark.parametrize(("name", "instruction"), MADE)
def test_products_are_of_two_blocks(name: str, instruction: str) -> None:
    """Four a turn, all of two blocks, with one arrival in both; columns are taken for two blocks, and copies count in one; a
    barrier of the cluster in a turn, which makes no stores visible, two ahead and one at the end, which do."""
    binary = built(compiled(name).source, "sm_100a")
    assert spills_nothing(binary)
    code = code_of(binary)
    found = Counter(re.findall(r"\b(UTC\w+MMA|UTCBAR)((?:\.\w+)*)", code))
    turns = sum(count for (each, _), count in found.items() if each == "UTCBAR")
    assert {each for each, _ in found} == {instruction, "UTCBAR"} and turns > 0
    assert sum(count for (each, _), count in found.items() if each == instruction) == 4 * turns
    assert all(".2CTA" in how for _, how in found) and all(".MULTICAST" in how for each, how in found if each == "UTCBAR")
    assert re.search(r"UTCATOMSWS\.2CTA\.FIND_AND_SET", code)
    assert len(re.findall(r"UTMALDG\.2D\.2CTA", code)) == len(re.findall(r"UTMALDG", code)) > 0
    assert len(re.findall(r"UCGABAR_WAIT", code)) == 3 + turns and len(re.findall(r"MEMBAR\.ALL\.GPU", code)) == 3
