"""What the compiler makes of the examples is what is kept, by any order of hashing; and what differs is told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.snapshot import ROOT, Entry, differences, main, read, waits

FEW = ("examples/saxpy.te", "examples/sum.te", "examples/tma/copy.te", "examples/scheduled/matmul_ring.te")


def test_a_few_programs_are_made_as_they_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*(str(ROOT / path) for path in FEW), "--processes", "1"]) == 0, capsys.readouterr().out


def test_what_differs_is_told() -> None:
    kept = {"a": Entry({"source": "1", "plan": "2"}, {"Barrier": 2}), "b": Entry({"source": "3"})}
    made = {"a": Entry({"source": "1", "plan": "4"}, {"Barrier": 3}), "c": Entry({"refusal": "5"})}
    assert list(differences(kept, kept)) == []
    assert list(differences(kept, made)) == ["a: another plan", "b: no longer made", "c: new"]
    assert list(waits(kept, made)) == ["a: Barrier 2 → 3 (more)"]


def test_every_program_is_kept() -> None:
    names = {name.split()[0] for name in read()}
    assert {path.removesuffix(".te") for path in FEW} <= names
    assert len(names) > 100


@pytest.mark.long
@pytest.mark.parametrize("seed", ["0", "1"])
def test_all_programs_are_made_as_they_are_kept(seed: str) -> None:
    run = [sys.executable, "-m", "tests.snapshot"]
    done = subprocess.run(
        run, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
