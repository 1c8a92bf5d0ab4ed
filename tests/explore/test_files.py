"""The files of the page: others' are as they were, and ours know the language."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

from texpr.editor.words import CONTEXTUAL, KEYWORDS
from texpr.explore.examples import FOLDERS, names

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "texpr" / "explore" / "static"


def test_the_editor_of_others_is_unchanged() -> None:
    folder = STATIC / "codemirror"
    hashes = dict(
        line.split()[::-1] for line in (folder / "ORIGIN").read_text().splitlines() if re.match("[0-9a-f]{64} ", line)
    )
    assert set(hashes) == {path.name for path in folder.iterdir()} - {"ORIGIN"}
    assert {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in hashes} == hashes
    assert (folder / "LICENSE").read_text().startswith("MIT License")


def test_the_editor_colours_every_word_of_the_language() -> None:
    text = (STATIC / "mode.js").read_text(encoding="utf-8")
    (listed,) = re.findall(r"new Set\(\((.*?)\)\.split", text, re.DOTALL)
    assert set(" ".join(re.findall(r'"(.*?)"', listed)).split()) == {*KEYWORDS, *CONTEXTUAL}


def test_scripts_make_no_text_a_program() -> None:
    for name in ("page.js", "mode.js"):
        text = (STATIC / name).read_text(encoding="utf-8")
        assert not re.search(r"\beval\b|new Function|document\.write|outerHTML|setTimeout\(\s*[\"'`]", text)
    assert set(re.findall(r"innerHTML = (.*?);", (STATIC / "page.js").read_text(encoding="utf-8"))) == {
        "found.html",
        "found.problems",
    }


def test_the_wheel_has_every_example_of_the_menu() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included: dict[str, str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert all(to == f"texpr/explore/{at}" for at, to in included.items())
    folders = {f"examples/{folder}" for folder in FOLDERS if folder}
    files = {f"examples/{name}" for name in names() if "/" not in name}
    assert set(included) == folders | files
