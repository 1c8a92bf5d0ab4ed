"""What adding something takes: made-up files are laid over a copy of the sources, and used. No file that exists is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import texpr

TOYS = Path(__file__).parent / "toys"
SOURCES = Path(texpr.__file__).parent
MOST_FILES = 2


@pytest.mark.parametrize("toy", sorted(path.name for path in TOYS.iterdir()))
def test_something_new_is_a_file_or_two(toy: str, tmp_path: Path) -> None:
    laid = [path.relative_to(TOYS / toy) for path in sorted((TOYS / toy).rglob("*")) if path.is_file()]
    added = [path for path in laid if path != Path("use.py")]
    assert 1 <= len(added) <= MOST_FILES
    copy = tmp_path / "texpr"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in added:
        assert not (copy / path).exists(), f"{path} is there already"
        shutil.copy(TOYS / toy / path, copy / path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-P", str(TOYS / toy / "use.py")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
