"""Thread sets: the threads of a team that execute a step.

all                        every thread
thread 0                   one, elected
threads 128..384           the threads of warps 4 to 11
threads 0..256 by 32       the first lane of each of eight warps
"""

from __future__ import annotations

from texpr.support.record import Record


class Threads(Record):
    """The threads t of a team with first ≤ t < `end` and t ≡ first, modulo `by`. `end` None: the size of the team."""

    first: int = 0
    end: int | None = None
    by: int = 1

    @property
    def is_all(self) -> bool:
        """Whether it is the whole team."""
        return self.first == 0 and self.end is None and self.by == 1

    @property
    def is_one(self) -> bool:
        """Whether it is a single thread, whatever the team."""
        return self.end is not None and self.first < self.end <= self.first + self.by

    def of(self, team: int) -> range:
        """The numbers of these threads in a team of this size."""
        return range(self.first, team if self.end is None else self.end, self.by)

    def __str__(self) -> str:
        if self.is_all:
            return "all"
        if self.is_one and self.by == 1:
            return f"thread {self.first}"
        by = "" if self.by == 1 else f" by {self.by}"
        return f"threads {self.first}..{'' if self.end is None else self.end}{by}"


ALL = Threads()
"""The whole team."""

ONE = Threads(0, 1)
"""Its first thread."""
