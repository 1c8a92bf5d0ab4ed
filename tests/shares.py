"""What `tests/long.txt` leaves to the long suite: shares of the tests that its patterns name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

LINE = re.compile(r"(0|1/([1-9][0-9]*)) +(tests/\S.*)")


@dataclass(frozen=True)
class Share:
    """Of the tests that `pattern` names, the first of each `every` is in the short suite; none where that is 0."""

    every: int
    pattern: str

    def names(self, test: str) -> bool:
        """Whether the pattern is this test's: * stands for any text, and nothing else for anything but itself."""
        return test.startswith(self.pattern.split("*", 1)[0]) and self._whole.fullmatch(test) is not None

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(".*".join(map(re.escape, self.pattern.split("*"))), re.DOTALL)


def shares(text: str) -> tuple[Share, ...]:
    """The lines of the list; `#` begins a comment.

    Raises:
        ValueError: A line is no share.
    """
    found = list[Share]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.fullmatch(line.rstrip())
        if match is None:
            raise ValueError(f"line {number} of tests/long.txt is no share and pattern: {line}")
        found.append(Share(int(match[2] or 0), match[3]))
    return tuple(found)


def divided(listed: Sequence[Share], tests: Iterable[str]) -> tuple[set[str], list[Share]]:
    """Which of the tests, in the order in which they are collected, are left to the long suite; and which lines name none."""
    counts = [0] * len(listed)
    left = set[str]()
    for test in tests:
        line = next((n for n, share in enumerate(listed) if share.names(test)), None)
        if line is None:
            continue
        every = listed[line].every
        if every == 0 or counts[line] % every:
            left.add(test)
        counts[line] += 1
    return left, [share for share, count in zip(listed, counts, strict=True) if not count]
