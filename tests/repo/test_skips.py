"""A skipped test fails CI unless it is listed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SKIPPING = """
import pytest
def test_fine(): pass
@pytest.mark.skip(reason="by mark")
def test_marked(): pass
def test_called(): pytest.skip("by call")
@pytest.mark.xfail(reason="known")
def test_expected(): assert False
@pytest.mark.parametrize("n", [1, 2])
def test_many(n):
    if n == 2: pytest.skip("two")
"""


def outcome(folder: Path, *options: str, listed: str = "") -> tuple[int, str]:
    """Run pytest on the tests above, in a folder of their own."""
    (folder / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "skips.txt").write_text(listed, encoding="utf-8")
    (folder / "test_some.py").write_text(SKIPPING, encoding="utf-8")
    (folder / "test_module.py").write_text("import pytest\npytest.skip('all', allow_module_level=True)\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", *options, str(folder)]
    here = {**os.environ, "PYTHONPATH": str(CONFTEST.parents[1])}
    done = subprocess.run(command, cwd=folder, env=here, capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout


def test_skips_pass_at_a_desk(tmp_path: Path) -> None:
    code, text = outcome(tmp_path)
    assert code == 0, text
    assert "2 passed, 4 skipped, 1 xfailed" in text


def test_an_unlisted_skip_fails_ci(tmp_path: Path) -> None:
    code, text = outcome(tmp_path, "--forbid-skips", "--continue-on-collection-errors")
    assert code == 1
    assert "3 failed, 2 passed, 2 errors" in text  # a skip by mark comes from the set-up, that of a module from collection
    assert "test_some.py::test_called was skipped, and tests/skips.txt does not list it" in text


def test_a_listed_skip_passes_ci(tmp_path: Path) -> None:
    listed = (
        "test_some.py::test_marked -- why\ntest_some.py::test_called\ntest_some.py::test_exp*\n*many*\ntest_module.py # all\n"
    )
    code, text = outcome(tmp_path, "--forbid-skips", listed=listed)
    assert code == 0, text


def test_an_unlisted_skip_fails_in_parallel_too(tmp_path: Path) -> None:
    code, text = outcome(
        tmp_path, "--forbid-skips", "-n", "2", "--ignore", "test_module.py", listed="*many*\n*expected\n*called"
    )
    assert code == 1
    assert "2 passed, 2 skipped, 1 xfailed, 1 error" in text
