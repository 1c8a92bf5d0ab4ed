"""Loops in order around which there is no other: what they carry from one iteration to the next is done by all blocks.

    seq n |i| { total += x[i]  y[i] = total }

There is no nest before chunks have made some (`scan`): sums of long chunks, what each chunk starts with, and the chunks.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.planner.follow import Follower, Refused
from texpr.planner.sums.chunks import is_carried, of_grid
from texpr.schedule.state import State


def opened(state: State) -> Follower | None:
    """The state with every such loop in chunks, and the directives; None where there is no such loop."""
    found = Follower(state, state.function.span)
    for loop in state.function.body if state.target.has_warps else ():
        if not isinstance(loop, ir.Seq) or loop.directives or not is_carried(loop) or not (size := of_grid(loop.extent, 1)):
            continue
        name = loop.sym.name
        tried = Follower(found.state, loop.span, list(found.directives))
        names = tried.fresh(name, "part", "term", "over", "chunk", "item")
        try:
            tried.must("scan", name, size, results=names)
            tried.must("scan", names[2])
        except Refused:
            continue
        found = tried
    return found if found.directives else None
