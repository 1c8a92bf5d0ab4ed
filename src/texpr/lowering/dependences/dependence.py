"""The kind of dependence for which synchronisation is placed, with the threads that have to synchronise."""

from __future__ import annotations

from typing import TypeAlias

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import InOrder
from texpr.ir.steps import Step
from texpr.isa.levels import WARP
from texpr.lowering.build.paths import Path, Paths
from texpr.support.record import Record

FAR = 16
"""The greatest distance in iterations that is distinguished: twice the longest ring."""

Scope: TypeAlias = tuple[k.Level, int]
"""The threads of a barrier: the lanes of a warp, a block in parts of this size (0: the whole block), or a cluster."""


class Dependence(Record, eq=False):
    """`sink` accesses an element that `source` accessed, and one of them writes: in one iteration of all common loops, or
    `distance` iterations of `carrier` later; a distance of 2 may represent more, if only barriers are needed.

    `level`, `part`: the narrowest scope that contains the threads of both ends; of a block a part of so many consecutive
    threads. No level: one thread has both ends, or only the completion of the source's copies is needed.

    Conditions on the paths from one end to the other: `within`: a loop around one end alone without a dependence in its
    adjacent iteration, so that any point in it is sufficient. `landed`: the source starts asynchronous copies; threads wait for
    them in the innermost list that contains both ends, and only then synchronise. `waited`: threads wait before the source, in
    the innermost list that contains both ends, even if the source does not execute.
    """

    source: Step
    sink: Step
    carrier: ir.Seq | None
    level: k.Level | None
    covered: k.Covered
    distance: int = 0
    within: ir.Seq | None = None
    landed: bool = False
    part: int = 0
    waited: bool = False

    @property
    def distant(self) -> bool:
        """Whether its ends are at least two iterations of the carrier apart, so that a whole iteration is between them."""
        return self.distance > 1

    @property
    def in_text(self) -> bool:
        """Whether its ends are parts of one `fully par` that barriers of the text order, and nothing else."""
        source, sink = (_part(step) for step in (self.source, self.sink))
        return source is not None and source == sink

    @property
    def scope(self) -> Scope | None:
        """The threads that have to synchronise, None if there are none."""
        return None if self.level is None else (self.level, self.part)

    def paths(self, tree: Paths) -> tuple[Path, ...]:
        """The paths from one end to the other, each of which has to contain a barrier or wait."""
        if self.carrier is None:
            return tree.within(self.source, self.sink, self.within, self.landed)
        return tree.carried(self.source, self.sink, self.carrier, self.distant, self.landed, self.waited)


def _part(step: Step) -> InOrder | None:
    stmt = step.stmts[0] if step.stmts else None
    return mark(stmt, InOrder) if isinstance(stmt, ir.Par | ir.Seq) else None


def parts(team: int, warp: int = WARP) -> tuple[int, ...]:
    """The sizes of parts of a block with a named barrier, in ascending order: whole warps, more than one."""
    return tuple(team // count for count in (8, 4, 2) if team % (count * warp) == 0 and team > count * warp)


def reach(scope: Scope) -> tuple[int, bool, int]:
    """A key by which scopes are ordered: a greater one covers a smaller one, as parts are nested."""
    level, part = scope
    return (k.Level.WARP, k.Level.BLOCK, k.Level.CLUSTER).index(level), not part, part
