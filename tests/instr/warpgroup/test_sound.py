"""Kernels with products of a warpgroup, altered at random: what is proved nevertheless gives the right numbers."""

from __future__ import annotations

from random import Random

import pytest
from tests.instr.test_sound import check
from tests.instr.warpgroup.test_warpgroup import compiled
from tests.instr.warpgroup.texts import CASES

from texpr.ir.kernel import Plan
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.verify import verify
from texpr.support.diagnostic import CompilerBug


def read(text: str) -> Plan | None:
    """The plan of a text, None if it breaks a rule of its form."""
    plan = parse_plan(text)
    try:
        verify(plan)
    except CompilerBug:
        return None
    return plan


@pytest.mark.planted
@pytest.mark.parametrize("tried", [5, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["one tile", "ring", "written", "scaled", "groups", "b by columns", "units by threads"])
def test_what_is_proved_is_right(name: str, tried: int) -> None:
    arguments, wanted = CASES[name].arguments((1, 1, 4 if name == "ring" else 2))
    check(compiled(name), arguments, "C", wanted, Random(name), tried, read)
