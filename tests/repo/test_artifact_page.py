"""The page of the artifact is what happens: its program is built, and its callers in C and Rust run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from texpr.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "artifact.md"
BLOCK = re.compile(r"^```(?P<kind>\w+( emulated\.c)?)( \S+)?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = {found["kind"]: found["text"] for found in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}
MANIFEST = '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n\n'


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as the page says, in a folder whose name needs care."""
    folder = tmp_path_factory.mktemp("mit Leerzeichen é")
    (folder / "scale.te").write_text(BLOCKS["te"], encoding="utf-8")
    assert main(["build", str(folder / "scale.te"), "--for", "cpu", "-o", str(folder / "out")]) == 0
    return folder / "out"


def run(words: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr
    return done.stdout


def tool(name: str) -> str:
    found = shutil.which(name)
    return found or pytest.skip(f"no {name}")


def test_what_the_command_says(artifact: Path) -> None:
    files = [path for path in artifact.rglob("*") if path.is_file()]
    assert BLOCKS["console"] == (f"$ texpr build scale.te --for cpu -o out\nout: scale for cpu, {len(files)} files\n")


def test_from_c(artifact: Path, tmp_path: Path) -> None:
    cmake = tool("cmake")
    (tmp_path / "main.c").write_text(BLOCKS["c"], encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(BLOCKS["cmake"], encoding="utf-8")
    run([cmake, "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={artifact}"], tmp_path)
    run([cmake, "--build", "build"], tmp_path)
    assert run([tmp_path / "build" / "app"], tmp_path) == "fine: 10 20 30\n"


def test_without_a_gpu(tmp_path: Path) -> None:
    """Memory of the program's own is an illegal address, until the emulator is told of it."""
    cmake = tool("cmake")
    (tmp_path / "scale.te").write_text(BLOCKS["te"], encoding="utf-8")
    if main(["build", str(tmp_path / "scale.te"), "--for", "sm_90a", "-o", str(tmp_path / "out")]) != 0:
        pytest.skip("no nvcc")
    (tmp_path / "main.c").write_text(BLOCKS["c emulated.c"], encoding="utf-8")
    linked = "texpr::scale texpr_scale_emulator"
    assert linked in PAGE.read_text(encoding="utf-8")
    lists = BLOCKS["cmake"].replace("app C)", "app C CXX)").replace("texpr::scale", linked)
    (tmp_path / "CMakeLists.txt").write_text(lists, encoding="utf-8")
    run([cmake, "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'out'}", "-DTEXPR_EMULATE=ON"], tmp_path)
    run([cmake, "--build", "build"], tmp_path)
    assert run([tmp_path / "build" / "app"], tmp_path) == BLOCKS["text"]


def test_from_rust(artifact: Path, tmp_path: Path) -> None:
    cargo = tool("cargo")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.rs").write_text(BLOCKS["rust"], encoding="utf-8")
    (tmp_path / "Cargo.toml").write_text(MANIFEST + BLOCKS["toml"].replace("DIR", str(artifact)), encoding="utf-8")
    run([cargo, "build", "--offline", "--quiet"], tmp_path)
    assert run([tmp_path / "target" / "debug" / "app"], tmp_path) == "[10.0, 20.0, 30.0]\n"
