"""Of every schedule of the gallery, written or found, it is proved that it keeps to its program."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planner.test_phases import PHASED
from tests.planner.test_squared import SQUARED
from tests.proof.schedule.trials import is_proved

import texpr
from texpr import driver
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful
from texpr.support.diagnostic import TexprError

ROOT = Path(__file__).parents[3]
FILES = sorted(
    path
    for folder in ("examples", "examples/scheduled", "examples/tma", "tests/proof/plan/everyday")
    for path in (ROOT / folder).glob("*.te")
)


NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]


@pytest.mark.parametrize("name", NAMES)
def test_schedules_keep_to_their_programs(name: str) -> None:
    for function in driver.load(ROOT / name).functions:
        for target in ("cpu", "sm_90a"):
            for schedule in (*function.schedules, "auto"):
                try:
                    compiled = driver.lower(function, target, schedule=schedule)
                except TexprError:
                    continue  # it is for another machine
                if compiled.written is not None:
                    proof = faithful(compiled.written, compiled.function)
                    assert is_proved(proof)
                    assert len(proof.of(Verdict.PROVED)) > 2


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", [*PHASED, *SQUARED])
def test_plans_keep_to_their_programs(name: str, target: str) -> None:
    """Phases with loops of their own, triangles that became squares."""
    (function,) = texpr.parse({**PHASED, **SQUARED}[name]).functions
    compiled = driver.lower(function, target, schedule="auto")
    assert compiled.written is not None
    assert is_proved(faithful(compiled.written, compiled.function))
