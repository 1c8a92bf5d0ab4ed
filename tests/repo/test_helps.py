"""Every help that proposes a change is applied: where it stood, the finding is gone.

The programs are those of the cases of wrong programs and of the page of error codes. Changes are data (`Diagnostic.fix`), so a
help cannot say one thing and propose another: what it proposes is in its words, which is looked at, too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.checks.test_wrong import CASES as CHECKED
from tests.frontend.cases import read
from tests.repo.test_errors_page import EXAMPLES, findings
from tests.schedule import test_wrong as schedules
from tests.schedule.test_wrong import CASES as SCHEDULED

from texpr.frontend import parse_text
from texpr.frontend.tree import Fn
from texpr.support.diagnostic import Clause, Diagnostic, Edit, TexprError, edited

PROPOSES = re.compile(r'add "(.+)"|promise it: "(.+)"|^did you mean|say `(assume .+)`|write `reduce\(')
"""Helps with words that are meant to be put into the text: these have a change as data, or their words are applied."""
DIRECTS = re.compile(
    r"^(add|ask|bind|call|choose|do|fix|give|leave|make|mark|move|name|pad|place|promise|put|reorder|say|split|stage|take|unroll"
    r"|use|vectorize|write)\b"
)
"""How a help for a schedule begins that tells to change it. Advice says what is so."""
QUOTED = re.compile(r'"((?:where|assume) [^"]+)"')


def programs() -> dict[str, str]:
    """Every wrong program by a name."""
    found = {f"frontend: {case.name}": case.source for case in read("wrong.test")}
    found |= {f"checks: {name}": program for name, (program, _) in CHECKED.items()}
    found |= {
        f"schedules: {name}": f"{schedules.PROGRAMS[of]}schedule f {{\n{said}}}\n" for name, (of, said, _) in SCHEDULED.items()
    }
    return found | {f"page: {code}": str(text) for code, text in EXAMPLES.items()}


PROGRAMS = programs()
ROOT = Path(__file__).parents[2]


def with_clause(text: str, at: int, clause: str) -> str:
    """`text` with a clause before the body of the function around the character `at`."""
    functions = [item for item in parse_text(text).items if isinstance(item, Fn)]
    own = next((fn for fn in functions if fn.span.start <= at < fn.span.end), functions[0])
    brace = text.index("{", own.span.start)
    return f"{text[:brace]}\n    {clause}\n{text[brace:]}"


def changed(text: str, found: Diagnostic) -> tuple[str, int, int] | None:
    """The text with what a help proposes, and how far what stood behind its diagnostic and before it has moved."""
    clause = found.fix.text if isinstance(found.fix, Clause) else None
    quoted = QUOTED.search(found.help or "") if found.fix is None else None
    if quoted is not None:
        clause = quoted.group(1)
    if clause is not None:
        assert found.span is not None
        new = with_clause(text, found.span.start, clause)
        return new, len(new) - len(text), len(new) - len(text)
    new = edited(found)
    if new is None:
        return None
    assert isinstance(found.fix, Edit) and found.span is not None
    place, moved = found.fix.span or found.span, len(new) - len(text)
    return new, moved if place.end <= found.span.start else 0, moved


def applied(text: str, found: Diagnostic) -> bool:
    """Whether the help of a diagnostic proposes a change; then the finding is gone with it."""
    change = changed(text, found)
    if change is None:
        return False
    new, before, behind = change
    assert found.span is not None
    start, end = found.span.start + min(0, before), found.span.end + max(0, behind)
    left = [d for d in findings(new) if d.code == found.code and d.span is not None and start <= d.span.start <= end]
    assert not any(d.message == found.message for d in left), f"{found.help}\n{new}"
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_help_that_proposes_a_change_helps(name: str) -> None:
    text = PROGRAMS[name]
    for found in findings(text):
        assert applied(text, found) or not PROPOSES.search(found.help or ""), found.help


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith(("schedules", "page: E09"))])
def test_what_a_help_for_a_schedule_tells_to_do_was_tried(name: str) -> None:
    """It has the change as data, so that the test above applies it."""
    for found in findings(PROGRAMS[name]):
        assert found.fix is not None or not DIRECTS.search(found.help or ""), found.help
        assert not found.proposals


def test_helps_for_schedules_in_the_sources_are_advice_or_changes() -> None:
    """A plain `help=` of a refusal, which nobody tries, tells nobody what to write."""
    rooms = (ROOT / "src" / "texpr" / room for room in ("schedule", "mapping", "lowering"))
    texts = {path: path.read_text(encoding="utf-8") for room in rooms for path in room.rglob("*.py")}
    plain = [(path.name, said) for path, text in texts.items() for said in re.findall(r"""help\s*=\s*f?["']([^"'\n]+)""", text)]
    assert len(plain) >= 20
    assert [(name, said) for name, said in plain if DIRECTS.search(said)] == []


def test_many_helps_propose_changes() -> None:
    """So that the test above says something: of each way to propose one there are several."""
    every = [found for text in PROGRAMS.values() for found in findings(text)]
    kinds = [type(found.fix).__name__ for found in every]
    assert kinds.count("Edit") >= 40 and kinds.count("Clause") >= 10


def test_a_help_that_does_not_help_is_not_given() -> None:
    """A name like the wrong one, but of an array where a size is needed; a promise on a size under a loop's index."""
    (found,) = _said("fn f(nn: f32[n]): f32[n] { new y: f32[n] par mn |i| { y[i] = nn[i] } return y }")
    assert found.code == "E0201" and found.help != "did you mean `nn`?"
    every = _said("fn f(x: f32[n], inout y: f32[n]) { par n |i| { y[i] = x[n / i] } }")
    (zero,) = (found for found in every if found.code == "E0408")
    assert zero.help is None


def _said(text: str) -> tuple[Diagnostic, ...]:
    try:
        return findings(text)
    except TexprError as raised:
        return raised.diagnostics
