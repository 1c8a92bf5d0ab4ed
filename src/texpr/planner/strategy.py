"""A strategy: one way to lay out one kind of nest, as a record. Each lives in a file of `texpr.planner.strategies`.

    applies(subject)            whether the nest is of its kind, and the target one that it is for
    propose(subject, refused)   the cheapest candidate that it has left, when `refused` says why those before it failed

The driver (`plan`) asks strategies of lower rank first, and among those of one rank follows the candidate that costs least.
The first one of which every directive is proved is taken. So a strategy with a cost model competes at its rank, and one that
is only for nests that others have left alone has a greater rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Protocol

from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.planner.follow import Follower, Refused
from texpr.planner.nest import Nest, NoPlan
from texpr.schedule.state import State
from texpr.support.record import Mutable, Record
from texpr.support.span import Span


class Rank(IntEnum):
    """When a strategy has its turn: what saves most bytes comes first."""

    TILE = 0
    """Elements that are read over and over are kept close by."""
    CLUSTER = 1
    """Blocks together keep what none has room for."""
    TURN = 2
    """Nothing is read twice, but whole lines of memory are used."""
    VECTOR = 3
    """Only the number of accesses is less."""
    PARTS = 4
    """The nest is cut into several, for each of which there is a strategy."""


class Subject(Record, eq=False):
    """A nest to be laid out. `nest`: its loops and accesses, or why it is none that has a single way of loops.

    `tiles_only`: another strategy rewrote the nest for the sake of a tile, and that is in vain without one. `is_part`: another
    one cut the nest of which this is a part. `named`: the line by which a user knows it, 0 for that of `par`.
    """

    par: ir.Par
    nest: Nest | NoPlan
    state: State
    tiles_only: bool = False
    is_part: bool = False
    named: int = 0

    @property
    def span(self) -> Span:
        """Where directives are told to stand."""
        return self.par.span

    @property
    def line(self) -> int:
        """The line that `explain` tells."""
        return self.named or self.par.span.line


class Tile(Protocol):
    """What the model of a strategy says of a tile."""

    def data(self) -> dict[str, Any]:
        """For `explain`: at least `tile`, iterations of each loop by its name."""
        ...


class Script(Follower):
    """The directives of one candidate."""

    def run(self) -> Sequence[Subject]:
        """Follows every directive, and says which nests are left to other strategies. Raises Refused, or NoPlan."""
        raise NotImplementedError


class Proposal(Record, eq=False):
    """A candidate. `cost`: what it moves for each iteration, in a measure that the strategies share that are for such a nest at
    this rank; 0 where there is one such strategy, and one candidate. `tile`: what is told of it; `said`: where it is no tile.
    """

    script: Script
    cost: float = 0.0
    tile: Tile | None = None
    said: str = ""


class Strategy(Record):
    """`propose` gives None where there is no candidate, or none is left, and raises NoPlan to say why."""

    rank: Rank
    applies: Callable[[Subject], bool]
    propose: Callable[[Subject, Sequence[Refused]], Proposal | None]


class Without(Mutable):
    """What the next tile does without: `banned` buffers are not staged; `in_order`: loops in order keep their places."""

    banned: frozenset[Buffer] = frozenset()
    in_order: bool = False


def without(refused: Sequence[Refused]) -> Without | None:
    """What tiles that were refused show that the next one has to do without; None where nothing of that helps."""
    found = Without()
    for reason in refused:
        if reason.buffer is not None:
            found.banned |= {reason.buffer}
        elif reason.directive.name == "reorder" and not found.in_order:
            found.in_order = True
        else:
            return None
    return found
