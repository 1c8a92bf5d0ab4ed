"""Places in a text as editors count them: lines from 0, and columns in units of an encoding, by default UTF-16."""

from __future__ import annotations

import re
from bisect import bisect_right
from difflib import SequenceMatcher
from itertools import accumulate

_LINE_END = re.compile(r"\r\n|\n|\r")
_UNITS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


class Positions:
    """The lines of a text. A position is a pair of a line and a column; out of range, the nearest place is meant."""

    def __init__(self, text: str, encoding: str = "utf-16"):
        self.text = text
        self.encoding = encoding if encoding in _UNITS else "utf-16"
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset in code points."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset) - 1
        before = self.text[self._starts[line] : min(offset, self._ends[line])]
        return line, self._length(before)

    def offset(self, line: int, column: int) -> int:
        """The offset of a position; within a character, that of its start."""
        if line < 0:
            return 0
        if line >= len(self._starts):
            return len(self.text)
        start, end = self._starts[line], self._ends[line]
        text = self.text[start:end]
        if text.isascii() or self.encoding == "utf-32":
            return min(start + max(column, 0), end)
        at = start
        for char in text:
            column -= self._length(char)
            if column < 0:
                break
            at += 1
        return at

    def end(self) -> tuple[int, int]:
        """The position of the end of the text."""
        return self.position(len(self.text))

    def _length(self, text: str) -> int:
        if text.isascii() or self.encoding == "utf-32":
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Moved:
    """Where the places of an old text are in a new one: in what both begin and end with, and in equal lines between."""

    def __init__(self, old: str, new: str):
        most = min(len(old), len(new))
        before = _common(old[:most], new[:most])
        after = _common(old[before:][::-1], new[before:][::-1])
        ends = len(old) - after, len(new) - after
        middle = _equal_lines(old[before : ends[0]], new[before : ends[1]])
        # Equal parts in order: starts in the old text and in the new one, and lengths.
        self._parts = [(0, 0, before), *((before + one, before + other, size) for one, other, size in middle), (*ends, after)]

    def forth(self, offset: int) -> int | None:
        """The place of an old offset; None where it is in what changed."""
        return next((new + offset - old for old, new, size in self._near(offset, 0) if old <= offset <= old + size), None)

    def back(self, offset: int) -> int | None:
        """The old place of an offset."""
        return next((old + offset - new for old, new, size in self._near(offset, 1) if new <= offset <= new + size), None)

    def _near(self, offset: int, which: int) -> list[tuple[int, int, int]]:
        """The parts that start last before an offset, or at it; the later one first."""
        at = bisect_right(self._parts, offset, key=lambda part: part[which])
        return self._parts[max(at - 2, 0) : at][::-1]


MOST_LINES = 400
"""Lines that are compared with each other."""


def _equal_lines(old: str, new: str) -> list[tuple[int, int, int]]:
    """The runs of equal lines of two texts: where they start in each, and their lengths in characters."""
    one, other = (text.splitlines(keepends=True) for text in (old, new))
    if max(len(one), len(other)) > MOST_LINES:
        return []
    starts, others = ([0, *accumulate(map(len, lines))] for lines in (one, other))
    matches = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [(starts[at], others[to], starts[at + size] - starts[at]) for at, to, size in matches if size]


def _common(one: str, other: str) -> int:
    """The length of what two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
