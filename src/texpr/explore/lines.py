"""The lines of each form, and the lines of the program that they come from.

Steps and kernels say it in their text, ` -- line 7`, and so do sources, by `TX_AT(7)` or a comment. A program that is laid out
has no such marks: its text is parsed again, and statement by statement compared with the form, whose statements have places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from texpr.artifact.certificate import said
from texpr.ir.program import Function, Stmt, walk
from texpr.support.record import Record
from texpr.support.span import NOWHERE

_FROM = re.compile(r"  -- line (\d+)(?:, column \d+)?$")
_COVERS = re.compile(r"\bfrom (\d+) to (\d+)\b")
_AT = re.compile(r"^\s*(?:TX_AT\((\d+)\)|// (\d+): )")
_ORDER = re.compile(r"\bline (\d+)\b")


class Line(Record):
    """A line of a form. `origin`: the lines of the program that it comes from, none where it comes from no single one."""

    text: str
    origin: tuple[int, ...] = ()


def written(text: str) -> tuple[Line, ...]:
    """The program itself."""
    return tuple(Line(line, (number,)) for number, line in enumerate(_split(text), 1))


def marked(text: str) -> tuple[Line, ...]:
    """Steps, or kernels."""
    return tuple(Line(line, _marks(line)) for line in _split(text))


def _marks(line: str) -> tuple[int, ...]:
    found = [int(mark[1])] if (mark := _FROM.search(line)) else []
    if " covers " in line:
        found += (int(number) for pair in _COVERS.findall(line) for number in pair)
    return tuple(dict.fromkeys(found))


def emitted(text: str) -> tuple[Line, ...]:
    """A source, of CUDA or C++: what is below a mark comes from its line, up to the next mark or the end of the function."""
    return tuple(_emitted(text))


def _emitted(text: str) -> Iterator[Line]:
    at: tuple[int, ...] = ()
    for line in _split(text):
        if mark := _AT.match(line):
            at = (int(mark[1] or mark[2]),)
        elif line and not line[0].isspace():
            at = ()
        order = tuple(map(int, _ORDER.findall(line))) if line.lstrip().startswith("// ") and not mark else ()
        yield Line(line, order or at)


def laid_out(function: Function) -> tuple[Line, ...]:
    """A program after its schedule, as text."""
    text, again = said(function)
    place = {
        printed.span.line: (stmt.span.line,)
        for printed, stmt in _pairs(again, function)
        if stmt.span is not NOWHERE and stmt.span.source.text
    }
    return tuple(Line(line, place.get(number, ())) for number, line in enumerate(_split(text), 1))


def _split(text: str) -> list[str]:
    """The lines as a program's places count them, by line feeds alone."""
    return text.removesuffix("\n").split("\n")


def _pairs(again: Function, function: Function) -> Iterator[tuple[Stmt, Stmt]]:
    """Statements of a program as it was read again, and those that they are; none where their kinds differ."""
    pairs = list(zip(walk(again.body), walk(function.body), strict=False))
    same = len(pairs) == sum(1 for _ in walk(function.body)) and all(type(one) is type(other) for one, other in pairs)
    return iter(pairs if same else ())
