"""The one kind of dependence that synchronisation is placed for, and who has to meet for it."""

from __future__ import annotations

from typing import TypeAlias

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.steps import Step
from texpr.isa.levels import WARP
from texpr.lowering.build.paths import Path, Paths
from texpr.support.record import Record

FAR = 16
"""The most iterations between two steps that are told apart: twice round the longest ring."""

Scope: TypeAlias = tuple[k.Level, int]
"""Who meets at a barrier: the lanes of a warp, a block in such parts or, with 0, as a whole, the blocks of a cluster."""


class Dependence(Record, eq=False):
    """`sink` touches what `source` touched, and one of them writes: within an iteration of all loops around both, or `distance`
    iterations of `carrier` later; 2 also stands for more, where nothing but barriers is asked for.

    `level`, `part`: the narrowest scope that holds the threads of both ends, of a block such a part of consecutive threads; no
    level: it is one thread, or all that is asked is that what `source` started is done.

    What a path from one to the other has to pass: `within`: a loop around one end alone, with no dependence in its adjacent
    iteration, so that anywhere in it will do. `landed`: the source starts copies; threads wait for them in the list that holds
    both ends, and only then may they meet. `waited`: threads wait ahead of the source, in the deepest list that holds both
    ends; they may do so where it does not run.
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
        """Whether its ends are two or more iterations of the carrier apart, so that all of its body is between them."""
        return self.distance > 1

    @property
    def scope(self) -> Scope | None:
        """Who has to meet, if anybody."""
        return None if self.level is None else (self.level, self.part)

    def paths(self, tree: Paths) -> tuple[Path, ...]:
        """The paths from one end to the other, each of which has to pass what is asked for."""
        if self.carrier is None:
            return tree.within(self.source, self.sink, self.within, self.landed)
        return tree.carried(self.source, self.sink, self.carrier, self.distant, self.landed, self.waited)


def parts(team: int, warp: int = WARP) -> tuple[int, ...]:
    """Sizes of parts of a block that have barriers of their own, the smallest first: whole warps, and more than one."""
    return tuple(team // count for count in (8, 4, 2) if team % (count * warp) == 0 and team > count * warp)


def reach(scope: Scope) -> tuple[int, bool, int]:
    """What covers what: a greater one covers a smaller one, as parts lie in each other."""
    level, part = scope
    return (k.Level.WARP, k.Level.BLOCK, k.Level.CLUSTER).index(level), not part, part
