"""Wrong programs and what is said of them."""

from __future__ import annotations

import pytest
from tests.frontend.cases import Case, read, renew

from texpr.frontend import parse
from texpr.support.codes import names, syntax, types
from texpr.support.diagnostic import Diagnostic, TexprError
from texpr.support.span import Span

CASES = read("wrong.test")


def place(span: Span | None) -> str:
    """Line and column, from 1."""
    return "-" if span is None else "{}:{}".format(*span.source.position(span.start))


def lines(found: Diagnostic) -> list[str]:
    """A diagnostic as the lines of a case."""
    text = [f"{found.code} {place(found.span)} {found.message}"]
    text += (f"    note {place(note.span)} {note.text}" for note in found.notes)
    if found.help is not None:
        text.append(f"    help {found.help}")
    return text


def diagnostics(source: str) -> list[str]:
    """Everything that is said of a program."""
    try:
        parse(source)
    except TexprError as raised:
        return [line for found in raised.diagnostics for line in lines(found)]
    return []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wrong(case: Case, request: pytest.FixtureRequest) -> None:
    actual = "\n".join(diagnostics(case.source)) + "\n"
    if request.config.getoption("--update-golden"):
        renew(case, actual)
        return
    assert actual == case.expected


def test_every_code_is_shown() -> None:
    shown = {line.split()[0] for case in CASES for line in case.expected.splitlines()}
    # No place in the text: a `const` that the build names.
    shown.add("E0209")
    assert shown >= {*syntax.CODES, *names.CODES, *types.CODES}


def test_const_that_does_not_exist() -> None:
    with pytest.raises(TexprError) as raised:
        parse("fn f(const k: i32) { }", consts={"k": 1, "q": 2})
    assert lines(raised.value.diagnostics[0]) == ["E0209 - there is no `const` called `q`", "    help there are k"]
