"""What is said to a user, and the three reasons why a compile stops.

A user's error (`TexprError`), something this compiler cannot do yet or cannot decide (`Limitation`) and a fault of the
compiler itself (`CompilerBug`) are three different things and are never shown as one another.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.support.record import Record
from texpr.support.span import Span


class Note(Record):
    """A further remark on a diagnostic, with the place it speaks of, if any."""

    text: str
    span: Span | None = None


class Diagnostic(Record):
    """One finding: `code` (see `texpr.support.codes`), where, the reason, and what would help."""

    code: str
    span: Span | None
    message: str
    notes: tuple[Note, ...] = ()
    help: str | None = None


class TexprError(Exception):
    """The program or the data is wrong; carries every diagnostic found. Exit code 1."""

    def __init__(self, diagnostics: Sequence[Diagnostic]):
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in self.diagnostics))


class Limitation(TexprError):
    """The program may be right, but this compiler can't prove or lower it. Exit code 1."""


class CompilerBug(Exception):
    """The compiler is wrong. Exit code 3, with how to report it."""


def error(code: str, span: Span | None, message: str, *notes: Note, help: str | None = None) -> TexprError:
    """A `TexprError` with one diagnostic."""
    return TexprError([Diagnostic(code, span, message, notes, help)])


def limitation(code: str, span: Span | None, message: str, *notes: Note, help: str | None = None) -> Limitation:
    """A `Limitation` with one diagnostic."""
    return Limitation([Diagnostic(code, span, message, notes, help)])
