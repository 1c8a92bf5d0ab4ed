"""A strategy: one kind of schedule for one kind of nest, as a record. Each lives in a file of `texpr.planner.strategies`.

    applies(subject)            whether it applies to the nest and the target
    propose(subject, refused)   the cheapest remaining candidate, given why the earlier ones failed
    others(subject)             what else it could propose, for a search that measures (`choice`)

The driver (`plan`) asks strategies of lower rank first, and among those of one rank applies the cheapest candidate. The first
one with all directives proved is taken. So a strategy with a cost model competes at its rank, and one that is only for nests
left by others has a greater rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.planner.follow import Follower, Refused
from texpr.planner.nest import Nest, NoPlan, outermost
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.state import State
from texpr.support.record import Mutable, Record
from texpr.support.span import Span

Lowered: TypeAlias = Callable[[State], object]
"""Lowers a function after a schedule. Raises TexprError."""


class Rank(IntEnum):
    """The order of strategies: those that save the most come first."""

    PRODUCT = 0
    """A unit of the machine does whole tiles of a product."""
    TILE = 1
    """Reused elements are kept in fast memory."""
    SCAN = 2
    """Iterations in order are done by many threads."""
    CLUSTER = 3
    """A cluster of blocks keeps what does not fit one block."""
    TURN = 4
    """No reuse, but whole lines of memory are used."""
    VECTOR = 5
    """Only the number of accesses is reduced."""
    PARTS = 6
    """The nest is split into several, for each of which there is a strategy."""
    LOOP = 7
    """Only the number of accesses is reduced, loop by loop."""


class Subject(Record, eq=False):
    """A nest to be scheduled. `nest`: its loops and accesses, or why it is not a single path of loops.

    `tiles_only`: another strategy rewrote the nest for a tile, without which the rewrite is useless. `is_part`: it is a part
    of a nest that another strategy split. `named`: its line for the user, 0 for that of `par`. `in_step`: its warps all do the
    same, as lowering refused roles. `lowered`: lowers a state, as it could not what was chosen first; raises TexprError.
    """

    par: ir.Par
    nest: Nest | NoPlan
    state: State
    tiles_only: bool = False
    is_part: bool = False
    named: int = 0
    in_step: bool = False
    lowered: Lowered | None = None

    @property
    def span(self) -> Span:
        """The span of directives."""
        return self.par.span

    @property
    def line(self) -> int:
        """The line shown by `explain`."""
        return self.named or self.par.span.line

    def alone(self) -> tuple[ir.Par, ir.Function]:
        """The nest in a plain program without the others, as far as they do not matter to it, and that program."""
        if not self.is_part:
            return self.par, self.state.alone(self.par).function
        function = materialise(self.state.alone(self._of(self.state.function))).function
        return self._of(function), function

    def _of(self, function: ir.Function) -> ir.Par:
        return next(par for par in outermost(function.body) if par.sym == self.par.sym)


class Tile(Protocol):
    """The tile that a strategy's model chose."""

    def data(self) -> dict[str, Any]:
        """For `explain`: at least `tile`, iterations of each loop by its name."""
        ...


class Script(Follower):
    """The directives of one candidate. `pays`: nests that it leaves are better even where none of them gets a tile."""

    pays: bool = False

    def run(self) -> Sequence[Subject]:
        """Applies every directive, and gives the nests that are left to other strategies. Raises Refused, or NoPlan."""
        raise NotImplementedError

    def finish(self) -> None:
        """Applies what is to be done behind the directives of the nests that were left. Raises Refused."""


class Proposal(Record, eq=False):
    """A candidate. `cost`: its traffic for each iteration, in a unit common to the strategies that compete at this rank; 0
    where there is one strategy with one candidate. `tile`: its description; `said`: the same where it is no tile.
    """

    script: Script
    cost: float = 0.0
    tile: Tile | None = None
    said: str = ""


def _none(subject: Subject) -> Iterable[Proposal]:
    """No other candidates."""
    return ()


class Strategy(Record):
    """`propose` gives None where there is no candidate, or none is left, and raises NoPlan with the reason. `others` is asked
    only where `propose` has given one, and may give that again; it gives them by cost."""

    rank: Rank
    applies: Callable[[Subject], bool]
    propose: Callable[[Subject, Sequence[Refused]], Proposal | None]
    others: Callable[[Subject], Iterable[Proposal]] = _none


class Without(Mutable):
    """Restrictions for the next tile: `banned` buffers are not staged; `in_order`: sequential loops are not interchanged."""

    banned: frozenset[Buffer] = frozenset()
    in_order: bool = False


def without(refused: Sequence[Refused]) -> Without | None:
    """The restrictions that follow from the refused tiles; None where no restriction helps."""
    found = Without()
    for reason in refused:
        if reason.buffer is not None:
            found.banned |= {reason.buffer}
        elif reason.directive.name == "reorder" and not found.in_order:
            found.in_order = True
        else:
            return None
    return found
