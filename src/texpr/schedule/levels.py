"""The levels of a machine that loops can be bound to, as schedules name them."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.ir import program as ir
from texpr.ir.program.marked import level_of, mark, pragma
from texpr.ir.program.marks import Unroll, Vector
from texpr.isa.levels import Level
from texpr.isa.target import Target

GRID, BLOCK, WARPS = ("grid.x", "grid.y", "grid.z"), ("block.x", "block.y", "block.z"), ("warp", "lane")
CLUSTERS = ("cluster.x", "cluster.y", "cluster.z")
"""Blocks of a cluster that share an iteration of the grid, x fastest."""

NAMES = {Level.GRID: GRID, Level.CLUSTER: CLUSTERS, Level.BLOCK: BLOCK, Level.WARP: WARPS, Level.CORE: ("core",)}
"""The names in schedules of the levels that loops can be bound to."""

AUTO = "auto"
"""The level that the compiler chooses."""


def levels(target: Target) -> tuple[str, ...]:
    """The levels that a loop can be bound to on `target`."""
    return tuple(name for level in target.levels for name in NAMES.get(level, ()))


def taken(loop: ir.Loop) -> str | None:
    """The level of a loop where a target has blocks: the one it is bound to, or the one that the mapping binds a `fully par`
    to, so that consecutive iterations are consecutive lanes."""
    lanes = isinstance(loop, ir.Par) and loop.fully and level_of(loop) is None
    return level_of(loop) if not lanes else "block.x" if pragma(loop, "cluster") is None else "cluster.x"


def may_be_inside(loop: ir.Loop, path: Sequence[ir.Loop]) -> bool:
    """Whether a predicate has to stay inside `loop`: hoisting it would break a perfectly nested band of thread loops."""
    if isinstance(loop, ir.Seq) or mark(loop, Unroll) or mark(loop, Vector):
        return True
    return level_of(loop) is None and any((level_of(p) or "").startswith(("block", "warp", "lane")) for p in path)
