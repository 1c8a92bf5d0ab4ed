"""What the repository promises: locked dependencies, no addresses, rooms in order, pages that show real programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from references import EXAMPLES

ROOT = Path(__file__).parents[2]
LOCKS = sorted(ROOT.glob("requirements*.lock"))
PEERS, TORCH = (ROOT / f"requirements-{name}.lock" for name in ("peers", "torch"))
"""Of an environment of its own, so that it need not agree with the others."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_pins_every_package_with_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9._-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


def needed(extra: str) -> list[str]:
    """What an extra asks for, with the extras that it names."""
    found: list[str] = []
    for requirement in PROJECT["project"]["optional-dependencies"][extra]:
        others = re.fullmatch(r"texpr-compiler\[(.*)\]", requirement)
        found += [requirement] if others is None else [each for other in others.group(1).split(",") for each in needed(other)]
    return found


def test_each_lock_holds_what_the_project_asks_for() -> None:
    needs = {"requirements.lock": [*PROJECT["project"]["dependencies"], *needed("build")]}
    needs["requirements-dev.lock"] = [*PROJECT["project"]["dependencies"], *needed("dev")]
    for extra in ("cuda", "zig", "bench", "docs", "explore", "lsp", "tune", "cluster", "postgres", "sign", "solver", "torch"):
        needs[f"requirements-{extra}.lock"] = needed(extra)
    needs[PEERS.name] = PROJECT["dependency-groups"]["peers"]
    assert sorted(needs) == [lock.name for lock in LOCKS]
    for name, wanted in needs.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for requirement in wanted:
            package = re.split(r"[\[<>=]", requirement)[0].lower().replace("_", "-")
            assert f"\n{package}==" in text, f"{name} lacks {package}: run `make lock`"


def test_locks_agree() -> None:
    versions: dict[str, set[str]] = {}
    for lock in set(LOCKS) - {PEERS, TORCH}:
        for package, version in re.findall(r"^([a-z0-9._-]+)==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE):
            versions.setdefault(package, set()).add(version)
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="no repository of git")
def test_every_file_is_one_of_the_project() -> None:
    listed = subprocess.run(["git", "ls-files", "--stage", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    links = [entry for entry in listed.split("\0")[:-1] if entry.split(" ", 1)[0] not in ("100644", "100755")]
    assert links == [], "a link, or another repository, leads out of a checkout"


def test_ci_calls_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")


def lint_imports(folder: Path) -> tuple[int, str]:
    """Run the contracts of the project on the package in `folder`."""
    program = Path(sys.executable).with_name("lint-imports")
    command = [str(program), "--no-logo", "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, to plant a wrong import in."""
    shutil.copytree(ROOT / "src" / "texpr", tmp_path / "texpr", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_rooms_import_in_order(copy: Path) -> None:
    code, text = lint_imports(copy)
    assert code == 0, text


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("frontend/planted.py", "import texpr.relation", "Imports go down the list of rooms only BROKEN"),
        ("checks/planted.py", "import texpr.interp", "Imports go down the list of rooms only BROKEN"),
        ("ir/program/planted.py", "import texpr.ir.kernel", "Programs do not see kernels, values see neither BROKEN"),
        ("proof/read/planted.py", "import texpr.proof.plan", "No checker sees what searches BROKEN"),
        ("checks/planted.py", "import texpr.editor", "Imports go down the list of rooms only BROKEN"),
        ("editor/planted.py", "import texpr.lowering", "An editor is told what the frontend and the checks know BROKEN"),
        ("lowering/place/planted.py", "import texpr.lowering.emit", "No pass of lowering sees a later one BROKEN"),
        ("backends/cpu/planted.py", "import texpr.backends.cuda", "Backends do not import each other BROKEN"),
        ("relation/planted.py", "import islpy", "Only presburger.isl imports islpy BROKEN"),
        ("editor/answers/planted.py", "import pygls", "Only editor.server imports pygls BROKEN"),
        ("draw/planted.py", "import starlette", "Only explore.server imports Starlette, and only cli starts it BROKEN"),
        ("explore/planted.py", "import uvicorn", "Only explore.server imports Starlette, and only cli starts it BROKEN"),
        ("tune/planted.py", "import texpr.explore.server", "Imports go down the list of rooms only BROKEN"),
        ("explore/page/html.py", "import texpr.explore.server", "What is shown on a page knows no server BROKEN"),
        ("interp/planted.py", "import rich", "Only the room cli speaks to a terminal BROKEN"),
        ("artifact/certificate.py", "import texpr.proof.search", "Who proves an artifact again sees no search BROKEN"),
        (
            "proof/plan/planted.py",
            "import texpr.lowering",
            "The verifier sees ir, affine, presburger, records of isa, and support only BROKEN",
        ),
        (
            "proof/plan/planted.py",
            "import texpr.proof.search",
            "The verifier sees ir, affine, presburger, records of isa, and support only BROKEN",
        ),
        (
            "proof/plan/planted.py",
            "import texpr.relation",
            "The verifier sees ir, affine, presburger, records of isa, and support only BROKEN",
        ),
    ],
)
def test_a_wrong_import_is_found(copy: Path, file: str, line: str, contract: str) -> None:
    planted = copy / "texpr" / file
    planted.parent.mkdir(exist_ok=True)
    (planted.parent / "__init__.py").touch()
    planted.write_text(f"{line}\n", encoding="utf-8")
    code, text = lint_imports(copy)
    assert code == 1
    assert contract in text


def test_a_new_room_needs_its_place(copy: Path) -> None:
    (copy / "texpr" / "attic").mkdir()
    (copy / "texpr" / "attic" / "__init__.py").touch()
    assert lint_imports(copy)[0] == 1


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_gallery_page_shows_its_program(example) -> None:
    page = (ROOT / "docs" / "gallery" / f"{example.name}.md").read_text(encoding="utf-8")
    assert f"```te\n{example.path.read_text(encoding='utf-8')}```\n" in page
    assert f"texpr run examples/{example.name}.te" in page
    stated = f"within {example.ulp} unit" if example.ulp else "compared bit for bit"
    assert stated in page


def test_every_program_has_a_reference() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.te")} == {example.name for example in EXAMPLES}
