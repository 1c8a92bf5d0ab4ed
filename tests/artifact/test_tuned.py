"""The report of a search goes along with what is built, as data: whole, of a function that is there, and proved by nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import texpr
from texpr.artifact.place import MANIFEST, SUMS, TUNED, sums
from texpr.cli import main

PLUS = "fn plus(x: f32[n]): f32[n] { new y: f32[n]\n par n |i| { y[i] = x[i] + 1.0 }\n return y }\n"
REPORT = {
    "search": "plus",
    "function": "plus",
    "target": "cpu",
    "objective": "time",
    "best": None,
    "trials": [],
    "ß": [1.5, None],
}


@pytest.fixture
def plus(tmp_path: Path) -> Path:
    file = tmp_path / "plus.te"
    file.write_text(PLUS, encoding="utf-8")
    return file


def report(folder: Path, **changed: object) -> Path:
    file = folder / "tune.json"
    file.write_text(json.dumps({**REPORT, **changed}), encoding="utf-8")
    return file


def built(plus: Path) -> Path:
    folder = plus.with_name("made")
    given = str(report(plus.parent))
    assert main(["build", str(plus), "--for", "cpu", "-o", str(folder), "--tuned", given]) == 0
    return folder


def test_it_goes_along_and_is_told_to_be_proved_by_nobody(plus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = built(plus)
    assert json.loads((folder / TUNED).read_text(encoding="utf-8")) == REPORT
    assert json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["tuned"] is True
    assert TUNED in (folder / "sbom.cdx.json").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["verify", str(folder), "--json"]) == 0
    assert TUNED in json.loads(capsys.readouterr().out)["not_proved"]


def listed_anew(folder: Path) -> None:
    """The list of hashes, as who edits a file would write it."""
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != SUMS}
    (folder / SUMS).write_bytes(sums(files))


OTHERS = {
    "of another function": json.dumps({**REPORT, "function": "minus"}, indent=1, ensure_ascii=False) + "\n",
    "no report": "{}\n",
    "no JSON": "[\n",
    "deep": "[" * 40 + "]" * 40 + "\n",
    "written otherwise": json.dumps(REPORT) + "\n",
    "other figures": json.dumps({**REPORT, "best": {"value": 0.1}}, indent=1, ensure_ascii=False) + "\n",
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_one_is_refused_though_it_is_listed(plus: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = built(plus)
    (folder / TUNED).write_text(OTHERS[name], encoding="utf-8")
    listed_anew(folder)
    assert main(["verify", str(folder)]) == 1
    assert "E0821" in capsys.readouterr().err


@pytest.mark.parametrize("gone", [TUNED, MANIFEST])
def test_without_the_file_or_the_word_of_it_it_is_refused(plus: Path, gone: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = built(plus)
    if gone == TUNED:
        (folder / TUNED).unlink()
    else:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        (folder / MANIFEST).write_text(text.replace(' "tuned": true,\n', ""), encoding="utf-8")
    listed_anew(folder)
    assert main(["verify", str(folder)]) == 1
    assert TUNED in capsys.readouterr().err


@pytest.mark.parametrize("changed", [{"function": "minus"}, {"trials": None, "function": []}])
def test_what_is_no_report_of_a_function_is_refused(
    plus: Path, changed: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = plus.with_name("made")
    given = str(report(plus.parent, **changed))
    assert main(["build", str(plus), "--for", "cpu", "-o", str(folder), "--tuned", given]) == 2
    assert "E0847" in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.parametrize(("text", "code"), [(None, "E0850"), ("{", "E0847"), ("7", "E0847"), ("[" * 200, "E0847")])
def test_what_cannot_be_read_is_refused(plus: Path, text: str | None, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = plus.with_name("given.json")
    if text is not None:
        given.write_text(text, encoding="utf-8")
    assert main(["build", str(plus), "--for", "cpu", "-o", str(plus.with_name("made")), "--tuned", str(given)]) == 2
    assert code in capsys.readouterr().err


def test_from_python(plus: Path) -> None:
    function = texpr.load(plus)["plus"]
    made = texpr.build(function, "cpu", plus.with_name("made"), tuned=report(plus.parent))
    assert TUNED in made.files
