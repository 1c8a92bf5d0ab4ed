"""The tour in the README is what happens: its commands are run, and say what it shows (times apart)."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from texpr.cli import main

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```(te (?P<file>\S+)|console|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
TIME = re.compile(r"[\d.]+ (s|ms|µs)$", re.MULTILINE)


def test_tour(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    golden: Callable[[Path, str], None],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    renewed = text
    for block in BLOCK.finditer(text):
        if block["file"]:
            Path(block["file"]).write_text(block["text"], encoding="utf-8")
        elif block["text"].startswith("$ texpr "):
            command, _, shown = block["text"].partition("\n")
            main(shlex.split(command)[2:])
            out, err = capfd.readouterr()
            said = cut(err + out, shown)
            renewed = renewed.replace(block[0], f"```console\n{command}\n{said}```")
    if TIME.sub("(time)", renewed) != TIME.sub("(time)", text) or request.config.getoption("--update-golden"):
        golden(README, renewed)


def cut(said: str, shown: str) -> str:
    """As many lines of `said` as are shown, where what is shown ends with a line of dots."""
    if not shown.endswith("\n…\n"):
        return said
    return "".join(said.splitlines(keepends=True)[: shown.count("\n") - 1]) + "…\n"


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
