"""An artifact carries what a schedule's proof is by: altered, or left out, it is not proved as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.artifact.test_certificate import put, told

import texpr
from texpr import artifact
from texpr.ir.program.instances import numbered
from texpr.ir.proof.notes_text import noted, notes_text
from texpr.ir.value.structure import same
from texpr.support.diagnostic import TexprError

TEXT = """
fn scaled(x: f32[n, 40]): f32[n, 40] {
    new y: f32[n, 40]
    par n |i| { par 40 |j| { y[i, j] = 2.0 * x[i, 39 - j] } }
    return y
}
schedule scaled {
    split(i, 4) -> (io, ii)
    split(j, 8) -> (jo, ji)
    reorder(io, jo, ii, ji)
    stage(x, at=jo, in=registers) -> xs
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("shipped") / "out"
    texpr.build(texpr.parse(TEXT)["scaled"], "cpu", directory, schedule=texpr.parse(TEXT)["scaled"].schedules[0])
    return directory


def changed(directory: Path, end: str, change: Callable[[str], str]) -> dict[str, str]:
    """A file of an artifact with other text."""
    (file,) = directory.rglob(f"*{end}")
    text = file.read_text(encoding="utf-8")
    assert change(text) != text
    return {end: change(text)}


def test_it_is_proved_again(built: Path) -> None:
    assert artifact.believed_schedules(artifact.verify(built).proofs) == []


@pytest.mark.parametrize(
    ("end", "old", "new"),
    [
        (".written.te", "-j + 39", "-j + 38"),
        (".written.te", "2.0 *", "3.0 *"),
        (".notes", "does 0 [", "does 1 ["),
        (".notes", "[ii + 4 * io", "[4 * io"),
        (".notes", "[ii + 4 * io, ", "["),
        (".notes", "statement 1", "statement 7"),
        (".notes", "statement 1", "statement 0"),
    ],
)
def test_what_is_altered_is_not(built: Path, tmp_path: Path, end: str, old: str, new: str) -> None:
    copy = shutil.copytree(built, tmp_path / "out")
    assert told(put(copy, **changed(copy, end, lambda text: text.replace(old, new))))


@pytest.mark.parametrize("ends", [(".notes",), (".written.te",), (".notes", ".written.te")])
def test_what_is_left_out_is_missed(built: Path, tmp_path: Path, ends: tuple[str, ...]) -> None:
    copy = shutil.copytree(built, tmp_path / "out")
    wrong = told(put(copy, **dict.fromkeys(ends)))
    assert any("missing" in each or "not proved as it was" in each for each in wrong)


def test_notes_survive_their_text() -> None:
    function = numbered(texpr.parse(TEXT)["scaled"])
    assert same(noted(texpr.parse(TEXT)["scaled"], notes_text(function)), function)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "notes other statements 1 { }",
        "notes scaled statements 2 { }",
        "notes scaled 1 { }",
        "notes scaled statements 1 { statement 1 does 0 [] }",
        "notes scaled statements 1 { } x",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(TexprError, match="E0581"):
        noted(texpr.parse(TEXT)["scaled"], text)


@pytest.mark.parametrize("name", ["turn", "element", "statements"])
def test_names_that_mean_something_in_notes(name: str) -> None:
    function = numbered(texpr.parse(TEXT.replace("scaled", name))[name])
    assert same(noted(texpr.parse(TEXT.replace("scaled", name))[name], notes_text(function)), function)
