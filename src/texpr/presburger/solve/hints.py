"""What decided questions before, as hints for the same questions in the same order: untrusted, and of no effect on an answer.

A question that was refuted has a core: some of its facts, which are contradictory by themselves. Whoever refutes the core again
has refuted the question, with much less to eliminate. A question that was not refuted has none; "not refuted" is no answer,
so it costs nothing but a proof to believe it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from texpr.support.record import Mutable, field

Core: TypeAlias = tuple[int, ...] | None
"""The positions of the facts of a core; None for a question that was not refuted."""

Hint: TypeAlias = tuple[int, Core]
"""The number of a question's facts, by which it is recognised, and its core."""

FARTHEST = 30
"""How many hints are skipped at most, where questions are left out."""


class Hints(Mutable):
    """Hints of earlier questions in their order, `given`, and those of the questions that are asked now, `made`."""

    given: Sequence[Hint] = ()
    made: list[Hint] = field(default_factory=list[Hint])
    at: int = 0

    def next(self, facts: int) -> Hint | None:
        """The hint for a question of so many facts; None where there is none."""
        for at in range(self.at, min(self.at + FARTHEST, len(self.given))):
            if self.given[at][0] == facts:
                self.at = at + 1
                return self.given[at]
        return None


_in_use: list[Hints] = []


def in_use() -> Hints | None:
    """The hints that questions follow and add to."""
    return _in_use[-1] if _in_use else None


@contextmanager
def hinted(given: Sequence[Hint] = ()) -> Generator[Hints]:
    """Hints that are in use within this context."""
    _in_use.append(Hints(given))
    try:
        yield _in_use[-1]
    finally:
        _in_use.pop()
