"""The levels of a machine that loops can be bound to, as schedules name them."""

from __future__ import annotations

from texpr.isa.levels import Level
from texpr.isa.target import Target

GRID, BLOCK, WARPS = ("grid.x", "grid.y", "grid.z"), ("block.x", "block.y", "block.z"), ("warp", "lane")
CLUSTERS = ("cluster.x", "cluster.y", "cluster.z")
"""Blocks of a cluster that share an iteration of the grid, numbered x first."""

AUTO = "auto"
"""The level that the compiler chooses."""


def levels(target: Target) -> tuple[str, ...]:
    """What a loop can be bound to on `target`."""
    if target.family == "cpu":
        return ("core",)
    return (*GRID, *(CLUSTERS if Level.CLUSTER in target.levels else ()), *BLOCK, *WARPS)
