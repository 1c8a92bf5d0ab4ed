"""Kernels as users bring them, mapped as they stand and by the schedule that is found: each is proved for every size."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.verifier.verdicts import open_of

from texpr import driver
from texpr.ir.selection import AUTO
from texpr.witness import proved

FILES = sorted((Path(__file__).parent / "everyday").glob("*.te"))


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("schedule", [AUTO, None], ids=["auto", "none"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_is_proved(file: Path, schedule: str | None, target: str) -> None:
    (function,) = driver.load(file).functions
    made = driver.lower(function, target, schedule=AUTO if schedule else None)
    assert open_of(proved(made.function, made.plan)) == []
