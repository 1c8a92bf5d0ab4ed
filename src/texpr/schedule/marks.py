"""What a schedule writes on the loops of a program for mapping and lowering: directives, the same as pragmas in the text.

#bind(grid.x)   #cluster(2)   #unroll or #unroll(n)   #vector   #async   #tma(128, 64, 32): the swizzle, and what of
a box lies in memory   #saves   #multicast(x): the dimensions of the grid along which blocks of a cluster share these boxes
#together(on) or #together(off)
#pipeline(3, As, Bs): slots, and the buffers that have them; gone when the schedule ends
"""

from __future__ import annotations

from typing import TypeVar

from texpr.ir import program as ir
from texpr.isa.levels import Level
from texpr.isa.target import Target
from texpr.support.record import replace
from texpr.support.span import NOWHERE, Span

BIND, UNROLL, VECTOR, ASYNC, TENSOR, PARTITION = "bind", "unroll", "vector", "async", "tma", "partition"
PIPELINE = "pipeline"

SAVES = "saves"
"""What a copy says that is not made where nothing of it is needed."""

CLUSTER, MULTICAST = "cluster", "multicast"

TOGETHER = "together"
"""What says of a loop of the host whether one launch may run it."""

UNGUARD = "unguard"
"""A loop that runs over holes, too."""

OFF = "off"
"""What `partition` says of a loop that must stay whole."""

BLOCKS = "launch_bounds"
"""A mark of the function: blocks that a multiprocessor should hold."""

GRID, BLOCK, WARPS = ("grid.x", "grid.y", "grid.z"), ("block.x", "block.y", "block.z"), ("warp", "lane")
CLUSTERS = ("cluster.x", "cluster.y", "cluster.z")
"""Blocks of a cluster that share an iteration of the grid, numbered x first."""

AUTO = "auto"
"""The level that the compiler chooses."""

_Loop = TypeVar("_Loop", bound=ir.Loop)


def levels(target: Target) -> tuple[str, ...]:
    """What a loop can be bound to on `target`."""
    if target.family == "cpu":
        return ("core",)
    return (*GRID, *(CLUSTERS if Level.CLUSTER in target.levels else ()), *BLOCK, *WARPS)


def marked(loop: _Loop, name: str, *args: str | int, span: Span = NOWHERE) -> _Loop:
    """`loop` with the mark `name`, in place of one of that name that it had. `span`: the directive that asked for it."""
    kept = tuple(d for d in loop.directives if d.name != name)
    return replace(loop, directives=(*kept, ir.Directive(name, tuple(ir.Argument(a) for a in args), span=span)))


def unmarked(loop: _Loop, name: str) -> _Loop:
    """`loop` without the mark `name`."""
    return replace(loop, directives=tuple(d for d in loop.directives if d.name != name))


def mark(loop: ir.Loop, name: str) -> ir.Directive | None:
    """The mark `name` of `loop`."""
    return next((d for d in loop.directives if d.name == name), None)


def asked_at(loop: ir.Loop, name: str) -> Span:
    """Where the mark `name` was asked for, or where the loop is written, if that is in no text."""
    found = mark(loop, name)
    return loop.span if found is None or found.span is NOWHERE else found.span


def level_of(loop: ir.Loop) -> str | None:
    """The level that `loop` is bound to: `grid.x`, `block.y`, `lane`, …"""
    found = mark(loop, BIND)
    return None if found is None else str(found.args[0].value)
