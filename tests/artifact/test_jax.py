"""What the page on JAX shows is built and run, where JAX is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.repo.tour import BLOCK, ROOT

import texpr

PAGE = (ROOT / "docs" / "howto" / "jax.md").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="needs pkg-config")
def test_the_handler_of_the_page(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="needs JAX")
    for found in BLOCK.finditer(PAGE):
        if found["file"]:
            (tmp_path / found["file"]).write_text(found["text"], encoding="utf-8")
    texpr.build(texpr.load(tmp_path / "saxpy.te")["saxpy"], "cpu", tmp_path / "saxpy")
    (command,) = [block for block in PAGE.split("```") if block.startswith("\nc++ ")]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    path = os.pathsep.join([str(Path(sys.executable).parent), str(tmp_path / "bin"), os.environ["PATH"]])
    for words in (["bash", "-e", "-c", command], [sys.executable, "saxpy_jax.py"]):
        done = subprocess.run(
            words, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout == "saxpy in JAX is right\n"
