"""Barriers of threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from texpr.ir.operation import BLOCK, CLUSTER, Operation
from texpr.ir.operation.covered import Covered
from texpr.ir.operation.form import At, Covers, Flag, Maybe, Number, Word
from texpr.isa.levels import WARP, Level
from texpr.support.diagnostic import CompilerBug

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.printing import Printing


def barrier_is_of_threads(stmt: Stmt, at: Place) -> Iterator[str]:
    """A barrier joins a cluster, a block, a part of a block, or consecutive lanes of a warp, in a kernel with threads."""
    if isinstance(stmt, Barrier):
        if stmt.level not in (Level.CLUSTER, Level.BLOCK, Level.WARP):
            yield f"no barrier joins a {stmt.level.value}"
        if stmt.level is Level.CLUSTER and not any(axis.level is Level.CLUSTER for axis in at.kernel.axes):
            yield "the kernel has no clusters to join"
        if stmt.relaxed and stmt.level is not Level.CLUSTER:
            yield f"a barrier of a {stmt.level.value} is never relaxed"
        most = at.kernel.warp if stmt.level is Level.WARP else WARP
        if not 1 <= stmt.lanes <= most or stmt.lanes & (stmt.lanes - 1):
            yield f"{stmt.lanes} lanes are no power of two up to {most}"
        if not any(axis.level is Level.BLOCK for axis in at.kernel.axes):
            yield "the kernel has no threads to join"
        if stmt.part and (stmt.level is not Level.BLOCK or stmt.part % at.kernel.warp or not _is_part(stmt.part, at)):
            yield f"{stmt.part} threads are no half, quarter or eighth of {at.kernel.threads} in whole warps, and no role"


def _is_part(threads: int, at: Place) -> bool:
    """Whether so many threads, from a multiple of that number on, are a part of the block; or the role around, or one of a few
    groups that it has, where all such barriers of the kernel are of as many: each part then has a number of its own."""
    warp, role = at.kernel.warp, at.role
    if role is not None:
        have, alike = role.warps * warp, {each.part for each in at.operations if isinstance(each, Barrier) and each.part}
        return have in (threads * count for count in range(1, 5)) and not role.first * warp % threads and alike == {threads}
    return at.kernel.threads in (threads * count for count in (2, 4, 8))


class Barrier(Operation, eq=False):
    """All threads of `level` (WARP, BLOCK or CLUSTER) arrive and see each other's writes. `covers`: the dependences.

    `lanes`: for WARP, the number of consecutive lanes that take part (a power of two). `part`: for BLOCK, the number of
    consecutive threads that synchronise (whole warps; a half, a quarter or an eighth of the block, all of a role, or a group of
    it), 0 for all of them.
    `relaxed`: all come, but do not see each other's writes: what is ordered is only what engines did before, which somebody
    waited for, and what engines do after. For CLUSTER, where writes made visible cost more than the barrier.
    """

    FORM = (
        Word("barrier"),
        At("level"),
        Maybe("lanes", WARP, "lanes", (Number("lanes"),)),
        Maybe("part", 0, "part", (Number("part"),)),
        Flag("relaxed"),
        Covers("covers"),
    )
    RULES = (barrier_is_of_threads,)

    level: Level
    covers: tuple[Covered, ...] = ()
    lanes: int = WARP
    part: int = 0
    relaxed: bool = False

    @property
    def joined(self) -> Level:
        """Its level."""
        return self.level

    @property
    def waits_for(self) -> tuple[Covered, ...]:
        """The dependences that the barrier covers."""
        return self.covers

    @property
    def meets(self) -> int:
        """All threads of its level, or the number of consecutive ones that take part."""
        return {Level.CLUSTER: CLUSTER, Level.BLOCK: self.part or BLOCK}.get(self.level, self.lanes)

    @property
    def whole(self) -> bool:
        """Whether it joins at least all threads of a block."""
        return self.level is not Level.WARP and not self.part

    def cuda(self, to: Printing) -> Iterator[str]:
        """The dependences as comments, and a barrier of the cluster, the block, a part of it, or a group of consecutive
        lanes."""
        yield from to.reasons(self.covers)
        threads = to.kernel.threads
        match self.level:
            case Level.CLUSTER:
                yield "tx_cluster_meet();" if self.relaxed else "tx_cluster_sync();"
            case Level.BLOCK if self.part:
                yield f"tx_bar_sync(tx_part({max(2, threads // self.part)}, {self.part}), {self.part});"
            case Level.BLOCK if to.parted is not None:
                yield f"tx_bar_sync<{to.parted}>({threads});"
            case Level.BLOCK:
                yield "__syncthreads();"
            case Level.WARP:
                whole = self.lanes == to.kernel.warp
                yield f"__syncwarp({(1 << self.lanes) - 1:#x}u);" if whole else f"__syncwarp(tx_group({self.lanes}));"
            case _:
                raise CompilerBug(f"a barrier of level {self.level.value} in a CUDA kernel")

    def does(self, effects: Effects) -> None:
        """The threads synchronise."""
        effects.meets()
