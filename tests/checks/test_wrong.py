"""Wrong programs and what is said of each, word for word: `wrong.test`, renewed with `--update-golden`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from texpr.checks import check
from texpr.checks.rules import RULES, Rule
from texpr.frontend import parse
from texpr.support.codes import TITLES
from texpr.support.diagnostic import Diagnostic, TexprError
from texpr.support.span import Span

FILE = Path(__file__).with_name("wrong.test")


def cases(text: str) -> dict[str, tuple[str, str]]:
    """Name → (program, expected output)."""
    found: dict[str, tuple[str, str]] = {}
    for part in re.split(r"^\[case ", text, flags=re.MULTILINE)[1:]:
        name, body = part.split("]\n", 1)
        program, _, expected = body.partition("[out]\n")
        found[name] = (program, expected)
    return found


def said(program: str) -> str:
    """Every diagnostic, with its notes and its help."""
    try:
        found = [d for f in parse(program, "f.te").functions for d in check(f)]
    except TexprError as problem:
        found = list(problem.diagnostics)
    return "".join(map(_text, found))


def _text(diagnostic: Diagnostic) -> str:
    lines = [f"{diagnostic.code} {_place(diagnostic.span)} {diagnostic.message}"]
    lines += [f"  note {_place(note.span)} {note.text}" for note in diagnostic.notes]
    lines += [f"  help {diagnostic.help}"] if diagnostic.help else []
    return "\n".join(lines) + "\n"


def _place(span: Span | None) -> str:
    return "-" if span is None else str(span).removeprefix("f.te:")


CASES = cases(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_wrong_programs_are_refused_in_these_words(name: str) -> None:
    program, expected = CASES[name]
    assert said(program) == expected
    assert re.search(r"^E0[45]", expected, flags=re.MULTILINE)


def test_renew(pytestconfig: pytest.Config) -> None:
    renewed = "".join(f"[case {name}]\n{program}[out]\n{said(program)}" for name, (program, _) in CASES.items())
    if pytestconfig.getoption("--update-golden"):
        FILE.write_text(renewed, encoding="utf-8")
    assert renewed == FILE.read_text(encoding="utf-8")


def test_every_code_of_these_rules_is_shown_or_built() -> None:
    """Codes that the frontend forestalls in every text are shown in `test_built.py`."""
    shown = set(re.findall(r"^(E\d{4})", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    built = set(re.findall(r"E0[45]\d\d", FILE.with_name("test_built.py").read_text(encoding="utf-8")))
    ours = {code for code in TITLES if "E0401" <= code <= "E0529"} - {"E0508", "E0509"}  # of proofs, shown in their tests
    ours -= {"E0421", "E0422"}  # of instructions and of `#ieee`, shown in `tests/instr` and `tests/frontend`
    ours -= {"E0424", "E0425", "E0510"}  # of barriers of the text, shown in `tests/proof/plan/test_text_rings.py`
    assert ours <= shown | built


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_needed(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it some wrong program goes unnoticed, so that these cases would catch its loss."""
    kept = tuple(r for r in RULES if r is not rule)
    monkeypatch.setattr("texpr.checks.rules.RULES", kept)
    lost = any(said(program) != expected for program, expected in CASES.values())
    assert lost == (rule.__name__ != "roles")  # the frontend forestalls that one in every text: see test_built.py
