"""Neighbouring registers of a lane, stored to neighbouring elements by one access, where rows allow it.

Before: seq 2 |r| { C[i, 2 * l + r] = acc[lane, r] }    After: par 2 |r| #vector { C[i, 2 * l + r] = acc[lane, r] }
"""

from __future__ import annotations

from collections.abc import Collection

from texpr.affine.expr import Sym
from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Vector
from texpr.ir.value import Buffer
from texpr.relation.collect import model
from texpr.schedule.rewrite.vectors import Lanes, Obstacle, examine
from texpr.schedule.stage.results import aligned
from texpr.schedule.tree import Body, replaced
from texpr.support.record import replace


def shared(function: ir.Function) -> frozenset[Buffer]:
    """The locals that a schedule puts into shared memory."""
    return frozenset(s.buffer for s in ir.walk(function.body) if isinstance(s, ir.New) and s.space == "shared")


def is_stored(function: ir.Function, body: Body) -> bool:
    """Whether statements write what is no local of lanes: arrays of callers, or shared memory."""
    own = shared(function)
    targets = (t.buffer for s in ir.walk(body) if isinstance(s, ir.Bind) for t in s.targets)
    return any(buffer.role != "local" or buffer in own for buffer in targets)


def wide(function: ir.Function, pairs: Collection[Sym]) -> ir.Function:
    """`function` with loops `pairs` as vectors where each access is one of neighbours, of results aligned accordingly."""
    known: dict[ir.Stmt, Known] = {instance.stmt: instance.known for instance in model(function).instances} if pairs else {}
    needed: dict[str, int] = {}
    for loop in [s for s in ir.walk(function.body) if isinstance(s, ir.Par) and s.sym in pairs]:
        found = list(examine(Lanes(loop, lambda stmt: known[stmt], True, shared(function)), loop.body))
        accesses = [each for each in found if not isinstance(each, Obstacle)]
        if len(accesses) == len(found):
            for load, size in accesses:
                if load.buffer.role == "result":
                    needed[load.buffer.name] = max(size, needed.get(load.buffer.name, 0), load.buffer.align or 0)
            made: ir.Stmt = marked(loop, Vector(span=loop.span))
        else:
            made = ir.Seq(loop.sym, loop.extent, loop.body, span=loop.span)
        function = replace(function, body=replaced(function.body, loop, lambda _, made=made: (made,)))
    return aligned(function, needed) if needed else function
