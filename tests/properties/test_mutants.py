"""Texts with changed tokens are programs or are refused; none of them brings a traceback, or takes long, or much memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.properties.mutants import ROOT, failures, look, mutant, texts

SLICES = 24
EACH = 250


def test_some_mutants() -> None:
    assert not list(failures(0, 60))
    assert len(texts()) >= 40 and len({mutant(number)[1] for number in range(60)}) > 50


def test_a_fault_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> bool:
        raise KeyError("j")

    assert look(texts()[0][1])
    monkeypatch.setattr("tests.properties.mutants.look", broken)
    (seen,) = failures(7, 1)
    assert "KeyError: 'j'" in seen and mutant(7)[1] in seen


@pytest.mark.long
@pytest.mark.parametrize("number", range(SLICES))
def test_six_thousand_mutants(number: int) -> None:
    """Each slice in a process of its own, whose memory is limited."""
    command = [sys.executable, "-m", "tests.properties.mutants", str(number * EACH), str(EACH)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
