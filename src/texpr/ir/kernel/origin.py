"""The source file of a plan, kept beside its text: its name, and the lines that printers quote.

The text of a plan has line numbers for its kernels and statements (`-- line 4`), and for the dependences of barriers. With an
`Origin`, which has the name of the file and the lines that a printer quotes, the parsed plan prints the same code as the
original one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import PurePath

from texpr.ir import kernel as k
from texpr.ir.kernel.parse import PlanParser
from texpr.ir.value.scanner import Scanner
from texpr.support.record import Record, field, replace
from texpr.support.span import NOWHERE, Source, Span

_NUMBERS = re.compile(r" (?:line|from|to) ([0-9]{1,6})\b")
_PLACE = re.compile(r"  -- line ([0-9]{1,6})(?:, column ([0-9]{1,4}))?$")


class Origin(Record):
    """The file of a plan: its `name`, without folders, and some of its `lines`, by number from 1."""

    name: str
    lines: Mapping[int, str] = field(default_factory=dict[int, str])


def origin_of(plan: k.Plan) -> Origin | None:
    """The file that `plan` comes from, with every line that it mentions; None for a plan that was built in Python."""
    source = plan.span.source
    if source is NOWHERE.source:
        return None
    return lines_of(source, sorted(set(_lines(plan))))


def lines_of(source: Source, numbers: Iterable[int]) -> Origin:
    """A file with some of its lines. Raises IndexError where it has no such line."""
    return Origin(_plain(PurePath(source.name).name), {number: _plain(source.line(number)) for number in numbers})


def printed_plan(text: str, name: str, origin: Origin | None) -> k.Plan:
    """Parses a plan for printing, with its positions in the file of `origin`. Raises E0581 as `parse_plan` does."""
    scan = Placed(text, name, origin)
    return replace(PlanParser(scan).plan(), span=NOWHERE if origin is None else Span(scan.origin, 0, 0))


def _plain(text: str) -> str:
    """`text` in valid UTF-8: the name of a file may contain other bytes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _lines(plan: k.Plan) -> Iterator[int]:
    for kernel in (kernel for each in plan.versions for kernel in k.kernels(each.steps)):
        spans = (kernel.span, *(stmt.span for stmt in k.walk(kernel.body)))
        yield from (span.line for span in spans if span.source is plan.span.source)


class Placed(Scanner):
    """A scanner whose positions are those that the text names."""

    def __init__(self, text: str, name: str, origin: Origin | None):
        super().__init__(text, name)
        found = [_PLACE.search(line) for line in text.split("\n")] if origin is not None else []
        named = [(int(place[1]), int(place[2] or 1)) if place is not None else None for place in found]
        last = max((int(number) for number in _NUMBERS.findall(text)), default=0) if origin is not None else 0
        self.origin, self._starts = _source(origin or Origin(""), last, {at for at in named if at is not None})
        self._places = [NOWHERE if at is None else self._there(*at) for at in named]

    def _there(self, line: int, column: int = 1) -> Span:
        if not 0 < line <= len(self._starts):
            raise ValueError(f"there is no line {line}")
        start = self._starts[line - 1] + column - 1
        return Span(self.origin, start, start)

    def span(self, start: int) -> Span:
        """The position that is named on the line of `start`."""
        return self._places[self._source.position(start)[0] - 1] if self._places else NOWHERE

    def place(self, line: int | None, start: int) -> Span:
        """The position of a line number."""
        return NOWHERE if line is None or not self._places else self._there(line)


def _source(origin: Origin, last: int, named: set[tuple[int, int]]) -> tuple[Source, list[int]]:
    """A text with the lines of `origin` at their numbers, long enough for the positions `named`, and the offsets of its
    lines."""
    width: dict[int, int] = {}
    for line, column in named:
        width[line] = max(width.get(line, 0), column)
    lines = [origin.lines.get(at, "").replace("\n", " ").ljust(width.get(at, 0)) for at in range(1, last + 1)]
    return Source(origin.name, "\n".join(lines)), list(accumulate((len(line) + 1 for line in lines), initial=0))[:last]
