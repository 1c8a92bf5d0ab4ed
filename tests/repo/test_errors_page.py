"""The page of error codes shows, for each code that a text can provoke, a program and exactly what is said of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from texpr.driver import lower
from texpr.frontend import parse
from texpr.ordered import check
from texpr.support.codes import TITLES
from texpr.support.diagnostic import Diagnostic, Limitation, TexprError
from texpr.support.render import render

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
EXAMPLE = re.compile(r"^```te error=(E\d{4})\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = dict(found.groups() for found in EXAMPLE.finditer(PAGE.read_text(encoding="utf-8")))

AREAS = {
    "E01": "Syntax",
    "E02": "Names",
    "E03": "Types and shapes",
    "E04": "Legality: what is proved wrong",
    "E05": "Limitations: what is undecided or not supported",
    "E06": "Compilers and tools",
    "E07": "Data given to a program",
    "E08": "Files and the command",
    "E09": "Schedules",
}

UNSHOWN = {
    "E0105": "needs a text too deep to print",
    "E0209": "comes from a call, not from a text",
    "E0405": "the frontend refuses it first, with E0313",
    "E0415": "the frontend refuses it first, with E0201",
}
"""Codes of the language that no example on the page shows, with the reason."""

HEAD = """# Error codes

Every message has a code, the place it speaks of, and, where something would help, a line that says what; a change of the text
that it proposes was made and tried before. The exit code is 1 for what is on this page, except where the call itself is wrong
(2). *error* is what is wrong; *limitation* is what this compiler cannot prove or lower, though it may be right. A fault of the
compiler itself has no code and exits with 3.

This page is checked: the tests run each program below and compare what is said of it.
"""


def findings(text: str) -> tuple[Diagnostic, ...]:
    """Everything wrong with a program, and where nothing is, with its schedules."""
    try:
        functions = parse(text, "f.te").functions
        found = tuple(found for function in functions for found in check(function))
        for function in functions if not found else ():
            for schedule in function.schedules:
                lower(function, "sm_90a", schedule=schedule)
    except (TexprError, Limitation) as wrong:
        return wrong.diagnostics
    return found


def page() -> str:
    """The page, with its examples and what is said of them now."""
    parts = [HEAD]
    for area, title in AREAS.items():
        parts.append(f"\n## {title}\n")
        codes = sorted(code for code in TITLES if code.startswith(area))
        shown = [code for code in codes if code in EXAMPLES]
        for code in shown:
            said = "\n".join(render(found) for found in findings(EXAMPLES[code]))
            parts.append(f"\n### {code}: {TITLES[code]}\n\n```te error={code}\n{EXAMPLES[code]}```\n\n```text\n{said}```\n")
        rest = [f"| {code} | {TITLES[code]} |\n" for code in codes if code not in shown]
        if rest:
            parts.append("\n| code | title |\n|---|---|\n" + "".join(rest))
    return "".join(parts)


def test_page(golden: Callable[[Path, str], None]) -> None:
    golden(PAGE, page())


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_shows_its_code(code: str) -> None:
    assert code in TITLES
    found = findings(EXAMPLES[code])
    assert code in [finding.code for finding in found]
    assert all(finding.span is not None and finding.message for finding in found)


def test_every_code_of_the_language_has_an_example() -> None:
    wanted = {code for code in TITLES if code < "E0505" or code.startswith("E09")} - UNSHOWN.keys()
    assert wanted - EXAMPLES.keys() == set()
    assert EXAMPLES.keys() & UNSHOWN.keys() == set()


def test_every_code_that_is_raised_has_a_title_and_every_title_is_raised() -> None:
    sources = [path for path in (PAGE.parents[1] / "src" / "texpr").rglob("*.py") if path.parent.name != "codes"]
    raised = {code for path in sources for code in re.findall(r"\bE0\d{3}\b", path.read_text(encoding="utf-8"))}
    counted = {code for code in TITLES if code.startswith(("E075", "E076"))}  # the emulator's, made of the kind of fault
    assert raised - TITLES.keys() == set()
    assert TITLES.keys() - raised - counted == set()
