"""Pages that are a tour: their files are written, their commands run, and what is said is compared with what the page shows.

A block that begins with ```te NAME, or python, cpp or another language with a name, is a file. One that begins with ```console
is commands, each after `$ `, and what they say; a line `…` stands for the rest of it. A block whose name begins with
`examples/` is the file of that name in the repository, which is tested elsewhere, and must equal it.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from texpr.cli import main

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
TIME = re.compile(r"\d[\d.]* (s|ms|µs)\b")
PATIENCE = 300
"""Seconds after which a command that does not end is given up."""

Said = Callable[[], tuple[str, str]]


def toured(page: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """The page with what its commands say now, run in this folder."""

    def renewed(found: re.Match[str]) -> str:
        kind, file, text = found["kind"], found["file"], found["text"]
        if file and file.startswith("examples/"):
            return f"```{kind} {file}\n{(ROOT / file).read_text(encoding='utf-8')}```"
        if file and "=" not in file:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(text, encoding="utf-8")
        elif kind == "console":
            return f"```console\n{''.join(answers(text, capfd))}```"
        return found[0]

    return BLOCK.sub(renewed, page.read_text(encoding="utf-8"))


def answers(text: str, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Each command of a block, and what it says."""
    found: list[str] = []
    for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        said = run(shlex.split(command.removeprefix("$ ")), capfd)
        found.append(f"{command}\n{cut(said, shown)}")
    return found


def run(words: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """What a command says: texpr in this process, Python in another."""
    match words:
        case ["texpr", *rest]:
            main(rest)
            out, err = capfd.readouterr()
            return err + out
        case ["python", *rest]:
            done = subprocess.run([sys.executable, *rest], capture_output=True, text=True, check=False, timeout=PATIENCE)
            return done.stderr + done.stdout
        case _:
            raise AssertionError(f"a page runs texpr and python alone, not {words[0]}")


def cut(said: str, shown: str) -> str:
    """As many lines of `said` as are shown, where what is shown ends with a line of dots."""
    if not shown.endswith("…\n"):
        return said
    return "".join(said.splitlines(keepends=True)[: shown.count("\n") - 1]) + "…\n"


def untimed(text: str) -> str:
    """The page without the times that it shows."""
    return TIME.sub("(time)", text)
