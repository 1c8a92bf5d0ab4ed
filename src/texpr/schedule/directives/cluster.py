"""`cluster(bj, 2)`: every two blocks along bj, a loop of the grid, are co-scheduled and can access each other's shared
memory.

The iterations and their order are unchanged: a cluster determines where blocks run, not what they compute. So it is always
legal; what uses it (`stage(…, multicast=bj)`) is proved there. Where the loop's extent is not a multiple, the last cluster
has blocks that compute nothing.
"""

from __future__ import annotations

from math import prod

from texpr.ir import program as ir
from texpr.ir.program.marked import mark, marked
from texpr.ir.program.marks import Cluster
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import Offers
from texpr.schedule.rewrite.cluster import blocks, dimension
from texpr.schedule.state import State
from texpr.schedule.tree import loops, path_to
from texpr.support.diagnostic import Note


def _apply(call: Call) -> State:
    call.expect(2)
    call.no_results()
    loop, target = call.loop(call.plain[0]), call.state.target
    name = loop.sym.base
    if not target.has_clusters:
        other = "targets from sm_90 on have them" if target.has_blocks else None
        raise call.refuse("E0908", f"{target.name} has no clusters of blocks", help=other)
    count = call.number(call.plain[1])
    if not dimension(loop):
        reason = f"`{name}` is not bound to the grid, so there are no blocks along it"
        raise call.refuse("E0918", reason, at=call.plain[0], offers=_bound(call, name))
    if mark(loop, Cluster):
        raise call.refuse("E0908", f"`{name}` has clusters of {blocks(loop)} blocks already", at=call.plain[0])
    for copy in call.state.copies(loop):
        _require_room(call, copy, count)
    return call.state.changed(loop, lambda copy: marked(copy, Cluster(count, span=call.directive.span)))


def _require_room(call: Call, loop: ir.Loop, count: int) -> None:
    """The cluster, with its extents along other loops of the nest, is within the limit of every device of the target."""
    outer = (s for s in (path_to(call.state.function.body, loop) or ())[:-1] if isinstance(s, ir.Par))
    others = [s for s in (*outer, *loops(loop.body)) if blocks(s) > 1]
    whole, target = count * prod(map(blocks, others)), call.state.target
    if whole <= target.max_cluster:
        return
    notes = [Note(f"{blocks(s)} of them lie along `{s.sym.base}`", s.span) for s in others]
    reason = f"a cluster would have {whole} blocks, and every {target.name} takes {target.max_cluster}; more is not portable"
    raise call.refuse("E0918", reason, *notes, at=call.plain[1], offers=_smaller(call, target.max_cluster * count // whole))


def _bound(call: Call, name: str) -> Offers:
    """The offers to bind the loop to a dimension of the grid first."""
    return tuple(offer for dim in "xyz" for offer in call.before("say before: %", f"bind({name}, grid.{dim})"))


def _smaller(call: Call, most: int) -> Offers:
    """The offer of the largest possible cluster."""
    return call.instead("make it smaller: %", lambda said: said.plain(1, most)) if most > 0 else ()


RULE = Rule("cluster", "cluster(LOOP, BLOCKS)", _apply)
