"""Places in a source text."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from texpr.support.record import Record


class Source(Record, dict=True):
    """A source text and its name for the user. Offsets count code points."""

    name: str
    text: str

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return (0, *(at + 1 for at, char in enumerate(self.text) if char == "\n"))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1), without its line end."""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


class Span(Record, eq=False):
    """The half-open range `start:end` of a source. Two spans never make two nodes unequal."""

    source: Source
    start: int
    end: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, Span)

    def __hash__(self) -> int:
        return 0

    @property
    def line(self) -> int:
        """The line (from 1) on which the span starts."""
        return self.source.position(self.start)[0]

    @property
    def text(self) -> str:
        """The text of the span."""
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.source, self.start, max(self.end, other.end))

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"


NOWHERE = Span(Source("<built>", ""), 0, 0)
"""The span of a node that was built in Python and has no source text."""
