"""The list of problems that plans are judged on: each line names a legal program and all its sizes; verdicts are by ratio."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from bench.common.problems import FOLDER, LIST, Problem, counted, problems, verdict

from texpr.checks import check
from texpr.cli.program import read_program

KNOWN = problems(LIST.read_text(encoding="utf-8"))
KINDS = (
    "columns",
    "scans",
    "rows",
    "loops",
    "small",
    "elementwise",
    "convolutions",
    "triangles",
    "fused",
    "exponentials",
    "plain",
)


def test_every_class_has_problems() -> None:
    kinds = Counter(each.kind for each in KNOWN)
    assert tuple(kinds) == KINDS
    assert min(kinds.values()) >= 5 and len(KNOWN) >= 60


@pytest.mark.parametrize("file", sorted({each.file for each in KNOWN}), ids=lambda path: path.stem)
def test_a_program_is_legal_and_every_size_is_given(file: Path) -> None:
    listed = [each for each in KNOWN if each.file == file]
    for problem in listed:
        program, sizes = read_program(file, dict(problem.sizes))
        function = program[problem.function]
        assert {sym.name for sym in function.sizes} == sizes.keys(), problem.name
        assert check(function) == ()


def test_every_program_is_listed() -> None:
    assert {each.file for each in KNOWN} >= set(FOLDER.glob("*.te"))


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(1.0, "good"), (1.3, "good"), (1.301, "mediocre"), (2.0, "mediocre"), (2.001, "bad"), (1000.0, "bad"), (None, "none")],
)
def test_a_ratio_is_judged(ratio: float | None, expected: str) -> None:
    assert verdict(ratio) == expected


def test_verdicts_are_counted() -> None:
    found = counted(["good", "bad", "good", "none"])
    assert found == {"good": 2, "mediocre": 0, "bad": 1, "none": 1} and list(found) == ["good", "mediocre", "bad", "none"]


def test_a_line_is_read() -> None:
    (found,) = problems("# a comment\n\nrows  one  rows:sum_of_norms  M=3 N=4  # another\n")
    assert found == Problem("rows", "one", FOLDER / "rows.te", "sum_of_norms", {"M": 3, "N": 4})


@pytest.mark.parametrize("text", ["rows one\n", "rows one rows M=1\n", "a b c:d M=1\na b c:d M=1\n", "a b c:d M=x\n"])
def test_a_line_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        problems(text)
