"""What tests have lowered is proved when that is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SOME = """
import pytest
from texpr.driver import lower, parse

TEXT = "fn f(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = -x[i] } return y }"

def test_right():
    lower(parse(TEXT)["f"], "sm_90a")

def nothing(monkeypatch):
    monkeypatch.setattr("texpr.lowering.lower.gather", lambda *_: ((), ()))
    lower(parse(TEXT)["f"], "sm_90a")

def test_wrong(monkeypatch):
    nothing(monkeypatch)

def test_again(monkeypatch):
    nothing(monkeypatch)
"""


def test_what_is_not_proved_is_told_once(tmp_path: Path) -> None:
    """Planted: a plan without steps. What is wrong on purpose is not looked at where that is said."""
    wrong = tmp_path / "test_wrong.py"
    wrong.write_text(SOME, encoding="utf-8")
    marked = tmp_path / "test_marked.py"
    marked.write_text(SOME.replace("def test_", "@pytest.mark.planted\ndef test_"), encoding="utf-8")
    options = ["-q", "-rN", "-p", "tests.proofs", "-p", "no:cacheprovider", "--import-mode=importlib"]
    options += ["-o", "markers=planted: of a test"]
    for file, said in ((wrong, "3 passed, 1 error"), (marked, "3 passed")):
        command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), "-c", "/dev/null", str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
        assert said in done.stdout and done.returncode == (file is wrong), done.stdout
        told = done.stdout.count("refused: , line 1: each instance is done, line 1, y: not at n = 1")
        assert told == (file is wrong), done.stdout
