"""Results that an engine stores while the next tile is computed: who stored waits for it where they are written anew.

    for j_t in … {                                        for j_t in … {
        for k_o in … { … }                                    for k_o in … { … }
        C_s[…] = …                                            if thread == 0 { wait_bulk 0 read }
        fence async; barrier                         →        barrier
        if thread == 0 {                                      C_s[…] = …
            tensor store … = C_s; commit_bulk                 fence async; barrier
            wait_bulk 0 read                                  if thread == 0 { tensor store … = C_s; commit_bulk }
        }                                                 }
        barrier
    }

Both barriers are executed as often as before, and whatever the second one was there for has one still. In the first tile there
is nothing to wait for. Where a tile leaves part by part, the loop over the parts is that loop, and the first part of the next
tile waits for the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from texpr.affine.expr import Expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.steps import Node, Step, leaves
from texpr.ir.value import Index, Literal, Op
from texpr.ir.value.types import BOOL, I32
from texpr.lowering.build.paths import Paths, ProgramPoint, lists
from texpr.lowering.dependences.dependence import Dependence, reach
from texpr.lowering.engine.box_copy import BoxCopy
from texpr.lowering.sync.barriers import Barriers
from texpr.lowering.sync.phases import Phases
from texpr.support.record import Record, replace


class Stored(Record):
    """Barriers, phases without the waits that come later, and these, by program point, ahead of the barrier there."""

    barriers: Barriers
    phases: Phases
    waits: Mapping[ProgramPoint, k.Stmt]


def later(
    barriers: Barriers,
    phases: Phases,
    stores: Mapping[Step, BoxCopy],
    met: Iterable[Dependence],
    nodes: tuple[Node, ...],
    thread: Expr,
    needs: Iterable[Dependence],
    runs: Callable[[ir.Seq], bool],
) -> Stored:
    """What threads do for tiles that a loop stores and writes again in its next turn, or in one of a loop around, as late as
    it can be.

    `needs`: what barriers are there for; `runs`: whether a loop always has an iteration where it is reached.
    """
    paths, asked = Paths(nodes, runs), tuple(needs)
    placed, reused, waits = dict(barriers), dict(phases.reused), dict[ProgramPoint, k.Stmt]()
    for leaf, copy in stores.items():
        again = [m for m in met if m.source is leaf and m.covered in phases.reused[copy]]
        carriers, sinks = {m.carrier for m in again}, {m.sink for m in again}
        own = next((steps for steps in lists(nodes) if steps.loop in carriers and leaf in steps.nodes), None)
        if phases.followed[copy] or None in carriers or own is None or not sinks <= {*leaves(own.nodes)}:
            continue
        at = own.number, next(n for n, node in enumerate(own.nodes) if not sinks.isdisjoint(leaves((node,)))) - 1
        covered = {*phases.reused[copy]}
        old = [gap for gap, each in placed.items() if gap[0] == own.number and not covered.isdisjoint(each.covers)]
        if len(old) != 1 or at in placed or own.nodes.index(leaf) > old[0][1]:
            continue
        enough = {at, *(gap for gap in placed if gap != old[0] and _reach(placed, gap) >= _reach(placed, old[0]))}
        if any(old[0] in way and enough.isdisjoint(way) for need in asked for way in need.paths(paths)):
            continue
        placed[at] = placed.pop(old[0])
        first = Op("eq", (Index(thread, I32), Literal(0, I32)), BOOL)
        wait = k.WaitBulk(0, read=True, covers=reused.pop(copy), span=copy.span)
        waits[at] = k.If(first, (wait,), span=copy.span)
        reused[copy] = ()
    return Stored(placed, replace(phases, reused=reused), waits)


def _reach(barriers: Barriers, gap: ProgramPoint) -> tuple[int, bool, int]:
    return reach((barriers[gap].level, barriers[gap].part))
