"""The tour in the README is what happens: its commands are run, and say what it shows (times apart)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```(te (?P<file>\S+)|console|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_tour(tour: Callable[[Path], None]) -> None:
    tour(README)


def test_the_python_of_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = [(found["file"], found["text"]) for found in BLOCK.finditer(README.read_text(encoding="utf-8"))]
    for file, text in blocks:
        if file:
            Path(file).write_text(text, encoding="utf-8")
    (code,) = (text for file, text in blocks if not file and text.startswith("import"))
    Path("tour.py").write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "tour.py"], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "1000.0\n"
