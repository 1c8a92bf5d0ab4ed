"""`texpr new`: what its README says works, word by word; what is refused leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Call

from texpr.cli import main, starter

SHOWN = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = "first-steps"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, in a folder whose path needs care."""
    folder = tmp_path_factory.mktemp("mit Leerzeichen é") / TITLE
    assert main(["new", str(folder)]) == 0
    return folder


def shown(folder: Path) -> list[list[str]]:
    """The commands of its README."""
    blocks = SHOWN.findall((folder / "README.md").read_text(encoding="utf-8"))
    return [line.split() for block in blocks for line in block.splitlines()]


def follow(folder: Path, wanted: str) -> str:
    """Runs the commands of the README that begin so; what they print."""
    said: list[str] = []
    for program, *words in shown(folder):
        if not " ".join((program, *words)).startswith(wanted):
            continue
        own = {"texpr": [sys.executable, "-m", "texpr"], "python": [sys.executable]}.get(program, [program])
        quick = ["--seconds", "0.001", "--cache", "warm"] if words[:1] == ["bench"] else []
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [*own, *words, *quick], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stderr
        said.append(done.stdout)
    assert said, f"the README has no `{wanted}`"
    return said[-1]


def test_what_is_made(made: Path) -> None:
    files = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file() and "build" not in path.parts}
    apps = {"cpp/CMakeLists.txt", "cpp/main.cpp", "rust/Cargo.toml", "rust/src/main.rs"}
    assert {"README.md", ".gitignore", "first_steps.te", "reference.py", "run.py"} | apps <= files
    assert all("@" not in (made / path).read_text(encoding="utf-8") for path in files if not path.endswith("lock"))
    assert [path.name for path in made.parent.iterdir()] == [TITLE]


def test_the_program_has_the_house_format(made: Path, texpr: Call) -> None:
    assert texpr("fmt", "--check", made / "first_steps.te")[0] == 0


def test_check_and_run(made: Path) -> None:
    follow(made, "texpr check")
    assert "equal to the bit (against interp)" in follow(made, "texpr run")


def test_bench(made: Path) -> None:
    assert "equal to the bit (against reference:first_steps)" in follow(made, "texpr bench")
    assert (made / "times.svg").exists()


def test_from_python(made: Path) -> None:
    assert follow(made, "python run.py") == "first_steps of 1000 elements is right\n"


@pytest.fixture(scope="module")
def built(made: Path) -> Path:
    follow(made, "texpr build")
    return made


def test_from_cpp(built: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("no cmake")
    follow(built, "cmake")
    assert follow(built, "build/cpp/app") == "first_steps of 1000 elements is right\n"


def test_from_rust(built: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo")
    assert follow(built, "cargo run") == "first_steps of 1000 elements is right\n"


def test_everything_that_is_shown_was_tried(made: Path) -> None:
    tried = ("texpr check", "texpr run", "texpr bench", "python run.py", "texpr build", "cmake", "build/cpp/app", "cargo run")
    assert all(" ".join(words).startswith(tried) for words in shown(made))


def test_one_object(texpr: Call, tmp_path: Path) -> None:
    code, out, _ = texpr("new", tmp_path / "deep" / "one", "--json")
    found = json.loads(out)
    assert code == 0 and found["ok"] and "one.te" in found["files"] and (tmp_path / "deep/one/one.te").exists()


def test_an_empty_folder_is_taken(texpr: Call, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    assert texpr("new", tmp_path / "one")[0] == 0 and (tmp_path / "one/one.te").exists()


@pytest.mark.parametrize("what", ["folder", "file", "link"])
def test_what_is_there_stays(texpr: Call, tmp_path: Path, what: str) -> None:
    place = tmp_path / "one"
    if what == "folder":
        place.mkdir()
        (place / "mine").write_text("mine")
    elif what == "file":
        place.write_text("mine")
    else:
        (tmp_path / "other").mkdir()
        place.symlink_to(tmp_path / "other")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    code, out, err = texpr("new", place)
    assert (code, out) == (2, "") and "E0813" in err
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["3d", "a b", "é", "main", "fn", "par", "match", "lambda", "int", "x.y", "_x", ".."])
def test_names_that_nothing_can_have(texpr: Call, tmp_path: Path, name: str) -> None:
    code, out, err = texpr("new", "--", tmp_path / name)
    assert (code, out) == (2, "") and "E0807" in err and list(tmp_path.iterdir()) == []


def test_a_help_for_a_name_was_tried(texpr: Call, tmp_path: Path) -> None:
    assert "call it my_match, say" in texpr("new", tmp_path / "match")[2]
    assert texpr("new", tmp_path / "my_match")[0] == 0


def test_a_failure_on_the_way_leaves_nothing(texpr: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {**starter.project("one"), "one.te/inside": ""}
    monkeypatch.setattr("texpr.cli.verbs.new.project", lambda title: files)
    code, _, err = texpr("new", tmp_path / "one")
    assert code == 2 and "E0855" in err and list(tmp_path.iterdir()) == []
