"""What is wrong with a text, and the change that would help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from texpr.frontend import parse_text, read
from texpr.frontend.tokens import tokenize
from texpr.frontend.tree import Fn, Tree
from texpr.ir.program import Function
from texpr.support.diagnostic import Clause, Diagnostic, Edit, TexprError
from texpr.support.record import Record
from texpr.support.span import Source, Span

Examine = Callable[[Function], Iterable[Diagnostic]]
"""Finds what is wrong with a function."""


class Change(Record):
    """A text in place of `start:end`."""

    start: int
    end: int
    text: str

    def made(self, text: str) -> str:
        """`text` with the change."""
        return text[: self.start] + self.text + text[self.end :]


class Problem(Record):
    """A finding at `start:end`, with further places of which it speaks, its help, and the change that the help proposes."""

    code: str
    is_error: bool
    start: int
    end: int
    message: str
    related: tuple[tuple[int, int, str], ...] = ()
    remarks: tuple[str, ...] = ()
    help: str | None = None
    change: Change | None = None


def problems(text: str, name: str, examine: Examine, stale: Callable[[], bool] = lambda: False) -> tuple[Problem, ...] | None:
    """Everything wrong with a text, as `texpr check` finds it; None where `stale` says that nobody asks any more."""
    try:
        tree, program = read(text, name, {})
    except TexprError as wrong:
        return tuple(_problem(text, found) for found in wrong.diagnostics)
    found: list[Problem] = []
    for function in program.functions:
        if stale():
            return None
        try:
            every = tuple(examine(function))
        except TexprError as wrong:
            every = wrong.diagnostics
        found += (_problem(text, each, tree, function) for each in every)
    return tuple(found)


def _problem(text: str, found: Diagnostic, tree: Tree | None = None, function: Function | None = None) -> Problem:
    place = _place(text, found.span) or _place(text, None if function is None else function.span) or (0, 0)
    related: list[tuple[int, int, str]] = []
    remarks: list[str] = []
    for note in found.notes:
        at = _place(text, note.span)
        if at is None:
            remarks.append(note.text)
        else:
            related.append((*at, note.text))
    change = next(_changes(text, found, tree, function), None)
    is_error = not found.code.startswith("E05")
    return Problem(found.code, is_error, *place, found.message, tuple(related), tuple(remarks), found.help, change)


def _place(text: str, span: Span | None) -> tuple[int, int] | None:
    return None if span is None or not text or span.source.text != text else (span.start, span.end)


def _changes(text: str, found: Diagnostic, tree: Tree | None, function: Function | None) -> Iterator[Change]:
    """The change that a help proposes, which was tried where it was found, if the text that it gives can be parsed."""
    match found.fix:
        case Edit():
            place = _place(text, found.fix.span or found.span)
            change = None if place is None else Change(*place, found.fix.text.replace("…", text[slice(*place)]))
        case Clause() if tree is not None and function is not None:
            change = _clause(text, found.fix.text, tree, function)
        case _:
            change = None
    if change is not None and (tree is None or _parses(change.made(text))):
        yield change


def _clause(text: str, clause: str, tree: Tree, function: Function) -> Change | None:
    """A promise as the last before the body of a function."""
    item = next((each for each in tree.items if isinstance(each, Fn) and each.span.start == function.span.start), None)
    if item is None:
        return None
    tokens = tokenize(Source("", text))
    at = next(at for at, kind in enumerate(tokens.kinds) if kind == "{" and tokens.starts[at] > item.name.span.start)
    brace = tokens.starts[at]
    if tokens.starts_line(at):
        start = text.rfind("\n", 0, brace) + 1
        return Change(start, start, f"    {clause}\n")
    return Change(tokens.ends[at - 1], brace, f"\n    {clause}\n")


def _parses(text: str) -> bool:
    try:
        parse_text(text)
    except TexprError:
        return False
    return True
