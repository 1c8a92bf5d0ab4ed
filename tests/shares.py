"""What `tests/long.txt` leaves to the long suite: shares of the tests that its patterns name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

LINE = re.compile(r"(0|1/([1-9][0-9]*)) +(tests/\S.*)")


@dataclass(frozen=True)
class Share:
    """Of the cases of a test that `pattern` names, the first of each `every` is in the short suite; none where that is 0."""

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
    counts = Counter[tuple[Share, str]]()
    left = set[str]()
    for test in tests:
        share = next((each for each in listed if each.names(test)), None)
        if share is None:
            continue
        of = share, test.split("[", 1)[0]
        if share.every == 0 or counts[of] % share.every:
            left.add(test)
        counts[of] += 1
    used = {share for share, _ in counts}
    return left, [share for share in listed if share not in used]
