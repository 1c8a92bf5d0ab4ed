"""Schedules that are refused and what is said of each, word for word: `wrong.test`, renewed with `--update-golden`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.frontend.cases import Case, read, renew

from texpr.driver import lower, parse
from texpr.ir.program import Schedule
from texpr.support.codes.schedule import CODES
from texpr.support.diagnostic import Diagnostic, TexprError
from texpr.support.span import Source, Span

HERE = Path(__file__).parent
CASES = read(str(HERE / "wrong.test"))
PROGRAMS = {
    found.split("(", 1)[0]: f"fn {found}"
    for found in re.split(r"^fn ", (HERE / "wrong.te").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
}
ELSEWHERE = {"E0916": "tests/tma"}
"""Codes of schedules that other tests show."""


def said(case: str) -> list[str]:
    """What is said of the schedule of a case, laid out and lowered for its target."""
    scheduled = re.search(r"^schedule (\w+)", case, flags=re.MULTILINE)
    assert scheduled is not None
    program = "" if "fn " in case else PROGRAMS[scheduled[1]]
    (function,) = parse(Source("case", case + program)).functions
    (schedule,) = function.schedules
    try:
        lower(function, target_of(schedule), schedule=schedule)
    except TexprError as refused:
        place = Places(case.count("\n"), scheduled[1])
        return [line for found in refused.diagnostics for line in place.lines(found)]
    return []


def target_of(schedule: Schedule) -> str:
    """A target that the schedule is for."""
    return "sm_90a" if schedule.target in (None, "cuda") else schedule.target


class Places:
    """Places of a case: in its own lines, of which there are `own`, or in the lines of the program called `name`."""

    def __init__(self, own: int, name: str):
        self.own, self.name = own, name

    def lines(self, found: Diagnostic) -> list[str]:
        """A diagnostic as the lines of a case."""
        text = [f"{found.code} {self.place(found.span)} {found.message}"]
        text += (f"    note {self.place(note.span)} {note.text}" for note in found.notes)
        return text if found.help is None else [*text, f"    help {found.help}"]

    def place(self, span: Span | None) -> str:
        """Line and column, from 1, and the text there."""
        if span is None:
            return "-"
        line, column = span.source.position(span.start)
        at = f"{line}:{column}" if line <= self.own else f"{self.name} {line - self.own}:{column}"
        return f"{at} «{' '.join(span.source.text[span.start : span.end].split())}»"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wrong(case: Case, request: pytest.FixtureRequest) -> None:
    actual = "\n".join(said(case.source)) + "\n"
    if request.config.getoption("--update-golden"):
        renew(case, actual)
        return
    assert actual == case.expected
    assert re.match(r"E\d{4} [^-]", actual), "nothing is said, or of no place"


def test_every_code_is_shown() -> None:
    shown = {line.split()[0] for case in CASES for line in case.expected.splitlines()}
    assert CODES.keys() - shown == ELSEWHERE.keys()
