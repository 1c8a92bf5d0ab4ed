"""Wrong schedules and what is said of each, word for word: `wrong.test`, renewed with `--update-golden`.

A case names its program and gives directives; a refusal shows its code, the text that the caret is at, the reason, the help.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from texpr.frontend import parse
from texpr.ir.program import Function, Schedule
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.schedule.apply import apply_schedule
from texpr.schedule.proposals import tried
from texpr.support.codes import schedule
from texpr.support.diagnostic import Diagnostic, Limitation, TexprError
from texpr.support.span import Span

FILE = Path(__file__).with_name("wrong.test")
PART = re.compile(r"^\[(program|case) (\w+)(?: of (\w+))?\]\n", re.MULTILINE)


def read(text: str) -> tuple[dict[str, str], dict[str, tuple[str, str, str]]]:
    """Programs by name; cases by name, as program, directives and what is said."""
    programs: dict[str, str] = {}
    cases: dict[str, tuple[str, str, str]] = {}
    pieces = PART.split(text)[1:]
    for kind, name, of, body in zip(pieces[::4], pieces[1::4], pieces[2::4], pieces[3::4], strict=True):
        if kind == "program":
            programs[name] = body
        else:
            directives, _, expected = body.partition("[out]\n")
            cases[name] = of, directives, expected
    return programs, cases


PROGRAMS, CASES = read(FILE.read_text(encoding="utf-8"))


def scheduled(program: str, directives: str) -> Function:
    """The function with its schedule."""
    return parse(f"{PROGRAMS[program]}schedule f {{\n{directives}}}\n", "f.te").functions[0]


def said(program: str, directives: str) -> str:
    """What is said of a schedule, in following it or in lowering what it makes."""
    function, target = scheduled(program, directives), resolve("sm_90a")

    def follow(function: Function, schedule: Schedule | None) -> None:
        made = apply_schedule(function, schedule, target)
        assert made is not None
        lower(made.function, target, {})

    try:
        follow(function, function.schedules[0])
    except (TexprError, Limitation) as problem:
        return "".join(map(shown, tried(problem, function, function.schedules[0], follow).diagnostics))
    return "nothing\n"


def shown(found: Diagnostic) -> str:
    """A diagnostic as lines."""
    lines = [f"{found.code} at {_text(found.span)}", f"  {found.message}"]
    lines += [f"  note {note.text}: {_text(note.span)}" for note in found.notes]
    lines += [f"  help {found.help}"] if found.help else []
    return "\n".join(lines) + "\n"


def _text(span: Span | None) -> str:
    text = "-" if span is None else span.source.text[span.start : span.end]
    return text if len(text) < 60 and "\n" not in text else f"{text.splitlines()[0][:40]} …"


@pytest.mark.parametrize("name", CASES)
def test_wrong_schedules_are_refused_in_these_words(name: str, pytestconfig: pytest.Config) -> None:
    program, directives, expected = CASES[name]
    if not pytestconfig.getoption("--update-golden"):
        assert said(program, directives) == expected
    assert said(program, directives).startswith("E09")


def test_renew(pytestconfig: pytest.Config) -> None:
    parts = [f"[program {name}]\n{text}" for name, text in PROGRAMS.items()]
    parts += [f"[case {name} of {p}]\n{d}[out]\n{said(p, d)}" for name, (p, d, _) in CASES.items()]
    if pytestconfig.getoption("--update-golden"):
        FILE.write_text("".join(parts), encoding="utf-8")
    assert "".join(parts) == FILE.read_text(encoding="utf-8")


def test_every_code_is_shown() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert {code for code in schedule.CODES if code <= "E0915" and f"\n{code} at " not in text} == set()
    assert len(CASES) >= 45
