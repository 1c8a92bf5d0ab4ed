"""The loop of a search: points are begun while a crew has room, and what became of each is kept at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from texpr.support.record import Mutable, field
from texpr.tune.outcome import INTERRUPTED, Outcome
from texpr.tune.outcome import task as task_of
from texpr.tune.problem import Problem
from texpr.tune.space import Point, Space

REPEATED = 8
"""Points that were measured before, one after the other, after which one that was not is taken at random."""

Tell = Callable[[list["Over"]], None]


class Crew(Protocol):
    """Workers that measure. `room`: how many more tasks they take now."""

    @property
    def room(self) -> int: ...

    def give(self, number: int, task: str) -> None:
        """Has the task of a trial done."""
        ...

    def take(self) -> tuple[int, Outcome]:
        """Waits for a trial to be over."""
        ...

    def close(self) -> None:
        """Ends all that is going on."""
        ...


class Over(Protocol):
    """A trial that is over."""

    @property
    def point(self) -> dict[str, int]: ...

    @property
    def outcome(self) -> Outcome: ...


class Trials(Protocol):
    """Where trials are kept (`study.Study`)."""

    space: Space
    name: str

    def trials(self) -> Iterable[Over]: ...
    def going(self) -> Iterable[Point]: ...
    def again(self) -> dict[str, int] | None: ...
    def begin(self, point: dict[str, int] | None) -> tuple[int, dict[str, int]]: ...
    def end(self, number: int, outcome: Outcome) -> None: ...


def search(kept: Trials, problem: Problem, crew: Crew, most: int, tell: Tell) -> None:
    """Measures points until `most` different ones are over, or there are no others. What is going on when this is left by an
    exception is kept as interrupted, and is made again by the next search."""
    turn = _Turn(kept, most)
    going: set[int] = set()
    try:
        while True:
            while crew.room > 0 and (found := turn.next()) is not None:
                number, point = found
                going.add(number)
                crew.give(number, task_of(problem, point))
            if not going:
                return
            number, outcome = crew.take()
            kept.end(number, outcome)
            going.discard(number)
            tell(list(kept.trials()))
    finally:
        crew.close()
        with suppress(Exception):  # what cannot be written now is found by the next search
            for number in going:
                kept.end(number, Outcome(INTERRUPTED, reason="the search was stopped"))


class _Turn(Mutable, eq=False):
    """Which point is next. `begun`: what was measured before, or is being, by this or another search in the same storage."""

    kept: Trials
    most: int
    begun: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])
    mine: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])
    order: Iterator[dict[str, int]] | None = None

    def key(self, point: Point) -> tuple[int, ...]:
        return tuple(point[each.name] for each in self.kept.space.dimensions)

    def next(self) -> tuple[int, dict[str, int]] | None:
        """A new trial; None where enough were begun, or nothing is left."""
        space = self.kept.space
        known = self.mine | {self.key(each.point) for each in self.kept.trials()}
        self.begun = known | {self.key(each) for each in self.kept.going()}
        if len(known) >= self.most or len(self.begun) >= space.size:
            return None
        if self.key(space.default) not in self.begun:
            return self._begin(space.default)
        while (left := self.kept.again()) is not None:
            if self.key(left) not in self.begun:
                return self._begin(left)
        if space.size <= self.most:
            return self._begin(self._fresh())
        for _ in range(REPEATED):
            number, point = self.kept.begin(None)
            if self.key(point) not in self.begun:
                self.mine.add(self.key(point))
                return number, point
            self._repeat(number, point)
        return self._begin(self._fresh())

    def _begin(self, point: dict[str, int]) -> tuple[int, dict[str, int]]:
        number, begun = self.kept.begin(point)
        self.mine.add(self.key(begun))
        return number, begun

    def _repeat(self, number: int, point: dict[str, int]) -> None:
        """Ends a trial of a point that was measured before as that one did, so that the sampler looks elsewhere."""
        known = next((each.outcome for each in self.kept.trials() if self.key(each.point) == self.key(point)), None)
        self.kept.end(number, known or Outcome(INTERRUPTED, reason="its point is being measured"))

    def _fresh(self) -> dict[str, int]:
        """A point that was not begun, the same in each run."""
        space = self.kept.space
        if self.order is None:
            source = random.Random(self.kept.name)
            drawn = iter(lambda: source.randrange(space.size), -1)
            numbers = source.sample(range(space.size), space.size) if space.size <= self.most else drawn
            self.order = (space.at(number) for number in numbers)
        return next(point for point in self.order if self.key(point) not in self.begun)
