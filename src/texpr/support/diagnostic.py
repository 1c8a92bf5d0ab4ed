"""Diagnostics, and the three kinds of failure of a compile.

A user's error (`TexprError`), something this compiler cannot do yet or cannot decide (`Limitation`) and a fault of the
compiler itself (`CompilerBug`) are distinct and never shown as one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from texpr.support.record import Record, replace
from texpr.support.span import Span


class Note(Record):
    """A further remark on a diagnostic, with its span, if any."""

    text: str
    span: Span | None = None


class Edit(Record):
    """A change of the text that a help proposes: `text` in place of `span`, by default that of the diagnostic.

    `…` in `text` is the old text.
    """

    text: str
    span: Span | None = None


class Clause(Record):
    """A promise that a help proposes to add to a function: `where n >= 1`, `assume t in 0..n`."""

    text: str


Fix: TypeAlias = Edit | Clause


class Proposal(Record):
    """A help, and the change that it proposes as data, so that it can be tried before it is given."""

    text: str
    fix: Fix


class Offer(Record, eq=False):
    """An untried proposal: `change` gives the changed program."""

    proposal: Proposal
    change: Callable[[Any], Any]


class Diagnostic(Record):
    """One finding: `code` (see `texpr.support.codes`), span, reason, and help.

    `fix`: the change that the help proposes, if any. `offers`: candidates for a better help, best first; `proposals` are
    candidates whose change of the text is to be tried.
    """

    code: str
    span: Span | None
    message: str
    notes: tuple[Note, ...] = ()
    help: str | None = None
    fix: Fix | None = None
    offers: tuple[Offer, ...] = ()
    proposals: tuple[Proposal, ...] = ()


def edited(found: Diagnostic) -> str | None:
    """The text of a diagnostic's file with the proposed change; None if there is none, or it has no span."""
    if not isinstance(found.fix, Edit):
        return None
    span = found.fix.span or found.span
    if span is None or not span.source.text:
        return None
    text = span.source.text
    return text[: span.start] + found.fix.text.replace("…", text[span.start : span.end]) + text[span.end :]


class TexprError(Exception):
    """The program or the data is wrong; contains every diagnostic. Exit code 1."""

    def __init__(self, diagnostics: Sequence[Diagnostic]):
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in self.diagnostics))


class Limitation(TexprError):
    """The program may be right, but this compiler can't prove or lower it. Exit code 1."""


class CompilerBug(Exception):
    """The compiler is wrong. Exit code 3, with instructions to report it."""


def error(
    code: str,
    span: Span | None,
    message: str,
    *notes: Note,
    help: str | Proposal | None = None,
    offers: tuple[Proposal, ...] = (),
) -> TexprError:
    """A `TexprError` with one diagnostic; `offers`: candidates for a better help, best first."""
    return TexprError([replace(diagnostic(code, span, message, notes, help), proposals=offers)])


def diagnostic(
    code: str, span: Span | None, message: str, notes: tuple[Note, ...] = (), help: str | Proposal | None = None
) -> Diagnostic:
    """A diagnostic whose help may propose a change."""
    if isinstance(help, Proposal):
        return Diagnostic(code, span, message, notes, help.text, help.fix)
    return Diagnostic(code, span, message, notes, help)


def limitation(
    code: str, span: Span | None, message: str, *notes: Note, help: str | None = None, offers: tuple[Proposal, ...] = ()
) -> Limitation:
    """A `Limitation` with one diagnostic; `offers` as in `error`."""
    return Limitation([Diagnostic(code, span, message, notes, help, proposals=offers)])
