"""What nvcc makes of products by a warpgroup: one HGMMA each, one fence and one wait a group, nothing between, nothing spilled.

ptxas waits behind each product, and says so (C7510 and others), where something else touches its registers: that is not to be.
"""

from __future__ import annotations

import re

import pytest
from tests.instr.warpgroup.test_warpgroup import compiled
from tests.machine_code import built, code_of, serialised, spills_nothing

from texpr.toolchain.cuda import CudaBinary

MADE = [
    ("one tile", "HGMMA.64x64x16.F32.BF16", 4),
    ("ring", "HGMMA.64x64x16.F32.BF16", 4),
    ("written", "HGMMA.64x64x16.F32.BF16", 4),
    ("groups", "HGMMA.64x64x16.F32.BF16", 4),
    ("n256", "HGMMA.64x256x16.F32.BF16", 4),
    ("tf32", "HGMMA.64x64x8.F32.TF32", 4),
    ("f8e4m3", "QGMMA.64x64x32.F32.E4M3.E4M3", 4),
    ("i8", "IGMMA.64x64x32.S8.S8", 4),
    ("both", "HGMMA.64x128x16.F32", 4),
]
"""The instruction, and how many are in a group."""


def binary(name: str) -> CudaBinary:
    """A case compiled by nvcc."""
    return built(compiled(name).source)


def instructions(made: CudaBinary) -> list[str]:
    """What is about the tensor core, and barriers of it, in order."""
    found = re.findall(r"(\w+GMMA\.[\w.]+|WARPGROUP\.ARRIVE|WARPGROUP\.DEPBAR)", code_of(made))
    return [each.split(" ")[0] for each in found]


@pytest.mark.parametrize(("name", "instruction", "count"), MADE, ids=[name for name, _, _ in MADE])
def test_groups_are_as_planned(name: str, instruction: str, count: int) -> None:
    """Each fence is followed by one group; waits are those of the plan, as often as loops are written out."""
    made = binary(name)
    assert spills_nothing(made)
    found = instructions(made)
    products = [each for each in found if "GMMA" in each]
    assert products and all(each.startswith(instruction) for each in products)
    groups = " ".join("P" if "GMMA" in each else each.split(".")[1][0] for each in found).replace(" ", "")  # P, A, D
    assert re.fullmatch(rf"(D*AP{{{count}}})+D+", groups), groups


@pytest.mark.parametrize("name", ["one tile", "ring", "scaled", "n256"])
def test_ptxas_has_nothing_to_say(name: str) -> None:
    assert not serialised(binary(name))
