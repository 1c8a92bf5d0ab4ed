"""The wheel: what is in it, and that it is enough. The journey of a user as a whole is in the long suite."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.users import journey

from texpr.explore.examples import names as explore_examples

ROOT = Path(__file__).parents[2]
QUICK = (journey.doctor, journey.new, journey.check, journey.format_, journey.completions, journey.lsp, journey.explore)


def made(kind: str, source: Path, to: Path) -> Path:
    """The wheel or the sdist of the sources in a folder."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(to)]
    done = subprocess.run(words, cwd=source, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = to.iterdir()
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made("wheel", ROOT, tmp_path_factory.mktemp("dist"))


def unpacked(wheel: Path, folder: Path) -> journey.Journey:
    """A user of the wheel's files, with the packages that the tests have."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "wheel")
    environment = journey.environment_of(folder, PYTHONPATH=str(folder / "wheel"))
    return journey.Journey([sys.executable, "-m", "texpr"], sys.executable, folder, environment)


@pytest.fixture(scope="module")
def user(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> journey.Journey:
    return unpacked(wheel, tmp_path_factory.mktemp("user"))


@pytest.mark.parametrize("step", QUICK, ids=lambda step: step.__name__.rstrip("_"))
def test_a_step(user: journey.Journey, step: object) -> None:
    """In their order; each in this process of tests alone needs the ones before."""
    if step not in (journey.doctor, journey.new) and not user.project.exists():
        journey.new(user)
    assert callable(step)
    step(user)


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    package = ROOT / "src" / "texpr"
    wanted = {
        f"texpr/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    examples = {name for name in names if name.startswith("texpr/explore/examples/")}
    assert {name for name in names if ".dist-info/" not in name} == wanted | examples
    assert {name.removeprefix("texpr/explore/examples/") for name in examples} == set(explore_examples())
    assert "texpr/py.typed" in wanted and {"texpr/cli/starter/templates/gitignore", "texpr/emulator/core/core.cpp"} <= wanted
    assert "Requires-Python: >=3.11\n" in metadata and "License-Expression: Apache-2.0\n" in metadata


LOST = {
    "a template": ("texpr/cli/starter/templates/main.rs", journey.new),
    "types": ("texpr/py.typed", journey.doctor),
    "a module": ("texpr/toolchain/hardware.py", journey.doctor),
}


@pytest.mark.parametrize(("lost", "step"), LOST.values(), ids=LOST)
def test_a_wheel_that_lacks_something_is_found(wheel: Path, tmp_path: Path, lost: str, step: object) -> None:
    user = unpacked(wheel, tmp_path)
    (tmp_path / "wheel" / lost).unlink()
    said: list[str] = []
    assert callable(step)
    assert not journey.go(user, [step], said.append) and "FAILED" in said[-1]


def test_a_step_without_its_tool_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said: list[str] = []
    user = journey.Journey([sys.executable, "-m", "texpr"], sys.executable, tmp_path, dict(os.environ))
    assert journey.go(user, [journey.cpp, journey.rust], said.append)
    assert said == ["cpp: not tried, no cmake\n", "rust: not tried, no cargo\n"]


@pytest.mark.long
def test_the_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """To the byte, as `python -m build` does it: what is built from needs nothing of the checkout."""
    sdist = made("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert made("wheel", source, tmp_path / "wheel").read_bytes() == wheel.read_bytes()


TOOLS = tuple(f"not tried, no {name}" for name in ("cmake", "cc", "pkg-config", "cargo", "torch", "google-chrome"))
"""What a machine need not have."""


@pytest.mark.long
def test_the_whole_journey(wheel: Path, tmp_path: Path) -> None:
    """From an empty folder, with an environment of its own; pip gets dependencies from its index."""
    program = [sys.executable, str(Path(journey.__file__)), str(wheel), str(tmp_path / "away")]
    program += [word for extra in ("lsp", "explore", "tune") for word in ("--extra", extra)]
    if find_spec("torch") is not None:
        program += ["--also", f"torch=={version('torch').partition('+')[0]}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [s.__name__.rstrip("_") for s in journey.STEPS]
    tried = [line for line in done.stdout.splitlines() if not line.endswith(TOOLS)]
    assert all(line.endswith(": ok") for line in tried), done.stdout
