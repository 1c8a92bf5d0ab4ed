"""What `tests/long.txt` leaves to the long suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shares import Share, divided, shares

TESTS = Path(__file__).parents[1]

CASES = """
import pytest
@pytest.mark.parametrize("n", range(7))
def test_many(n): pass
@pytest.mark.long
def test_long(): pass
@pytest.mark.parametrize("text", ["a*b", "[x]"])
def test_odd(text): pass
"""


def ran(folder: Path, listed: str, *options: str, gone: str = "") -> tuple[int, str]:
    """A run of the tests above, in a project of their own with such a list."""
    (folder / "tests").mkdir(parents=True)
    (folder / "tests/conftest.py").write_text((TESTS / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "tests/long.txt").write_text(listed, encoding="utf-8")
    (folder / "tests/test_some.py").write_text(CASES, encoding="utf-8")
    if gone:
        (folder / "tests/test_gone.py").write_text(gone, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers =\n    long: long\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", *options]
    here = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    done = subprocess.run(command, cwd=folder, env=here, capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", [(), ("--numprocesses=2",)])
def test_short_and_long_are_all(tmp_path: Path, workers: tuple[str, ...]) -> None:
    listed = "1/3  tests/test_some.py::test_many*\n# why\n0  tests/test_some.py::test_odd[a*]\n"
    code, short = ran(tmp_path / "short", listed, "-m", "not long", *workers)
    assert code == 0, short
    assert [n for n in range(7) if f"test_many[{n}]" in short] == [0, 3, 6]
    assert "test_odd[[x]]" in short and "4 passed" in short
    code, rest = ran(tmp_path / "long", listed, "-m", "long", *workers)
    assert code == 0 and "6 passed" in rest, rest


def test_a_line_that_names_no_test_is_an_error_where_all_are_collected(tmp_path: Path) -> None:
    listed = "0  tests/test_some.py::test_gone*\n"
    code, text = ran(tmp_path / "all", listed)
    assert code and "names what is no test: tests/test_some.py::test_gone*" in text
    code, text = ran(tmp_path / "one", listed, "tests/test_some.py")
    assert code == 0, text


def test_a_file_that_cannot_be_collected_is_told_first(tmp_path: Path) -> None:
    code, text = ran(tmp_path, "0  tests/test_gone.py::*\n", gone="import nothing_of_this_name\n")
    assert code and "nothing_of_this_name" in text and "names what is no test" not in text


def test_a_test_belongs_to_the_first_line_that_names_it() -> None:
    listed = (Share(0, "t::a[1]"), Share(2, "t::a*"), Share(0, "t::*"))
    assert divided(listed, ("t::a[0]", "t::a[1]", "t::a[2]", "t::a[3]", "t::b")) == ({"t::a[1]", "t::a[2]", "t::b"}, [])
    assert divided(listed, ("t::a[0]",)) == (set(), [listed[0], listed[2]])


def test_each_test_keeps_its_first_case() -> None:
    found = divided((Share(3, "t::*"),), ("t::a[0]", "t::b[0]", "t::a[1]", "t::b[1]", "t::c"))
    assert found == ({"t::a[1]", "t::b[1]"}, [])


@pytest.mark.parametrize("line", ["tests/a.py::*", "1/0 tests/a.py::*", "2 tests/a.py::*", "0 a.py"])
def test_a_wrong_line_is_told(line: str) -> None:
    with pytest.raises(ValueError, match=r"line 2 of tests/long\.txt is no share and pattern"):
        shares(f"# head\n{line}\n")
