"""The page on architecture shows the forms of a program: they are what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from texpr.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")
SHOWN = re.findall(r"^```console\n\$ texpr ([^\n]*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "printed"), SHOWN, ids=[command.split()[-1] for command, _ in SHOWN])
def test_a_form_is_what_is_shown(
    command: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = re.findall(r"^```te\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    (tmp_path / "turn.te").write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == printed


def test_all_forms_between_program_and_text_are_shown() -> None:
    assert [command.split()[-1] for command, _ in SHOWN] == ["steps", "kernel", "source"]
