"""`fully par`: each iteration is a thread of its own, and consecutive ones are consecutive lanes.

    fully par 512 |i| {…}               →   … #bind(block.x)
    fully par 4 |i| #cluster {…}        →   … #bind(cluster.x): a block of the cluster each

Threads are numbered by block.x fastest, from 0, so any `#align` of the first lane holds. Loops that cannot run together are
refused.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.marked import level_of, marked, pragma
from texpr.ir.program.marks import Bind
from texpr.ir.program.rewrite import with_blocks
from texpr.isa.levels import Level
from texpr.isa.target import Target
from texpr.schedule.edits import words
from texpr.schedule.tree import Body
from texpr.support.diagnostic import error
from texpr.support.record import replace
from texpr.support.span import Span


def at_once(function: ir.Function, target: Target) -> ir.Function:
    """`function` with each `fully par` bound to threads of a block, or to blocks of a cluster. Raises TexprError E0910 where
    it has more iterations than `target` is certain to run at once. On a CPU it is not observable whether lanes run
    together."""
    return replace(function, body=_block(function.body, target)) if target.has_blocks else function


def _block(body: Body, target: Target) -> Body:
    found: list[ir.Stmt] = []
    for stmt in body:
        made = with_blocks(stmt, tuple(_block(block, target) for block in ir.blocks(stmt)))
        if isinstance(made, ir.Par) and made.fully and level_of(made) is None:
            made = marked(made, Bind(_level(made, target), span=made.span))
        found.append(made)
    return tuple(found)


def _level(loop: ir.Par, target: Target) -> str:
    number, asked = loop.extent.constant, f"`fully par` over `{loop.sym.base}` runs {loop.extent} iterations at once"
    if (grid := pragma(loop, "grid")) is not None:
        reason = f"blocks of a grid need not run at once, and a `fully par` over `{loop.sym.base}` asks for that"
        raise error("E0910", grid.span, reason, offers=words(grid.span, "write #block", "#block"))
    if (cluster := pragma(loop, "cluster")) is not None:
        most = target.max_cluster if Level.CLUSTER in target.levels else 0
        if number > most:
            reason = f"a {asked}, and a cluster of {target.name} has {most} blocks at most"
            raise error("E0910", cluster.span, reason, offers=words(cluster.span, "write #block", "#block"))
        return "cluster.x"
    if number > target.max_threads:
        reason = f"a {asked}, and a block of {target.name} has {target.max_threads} threads at most"
        start = Span(loop.span.source, loop.span.start, loop.span.start + len("fully par"))
        offers = words(start, "make it a `par`, whose iterations may come one after the other", "par")
        raise error("E0910", loop.span, reason, offers=offers if start.text == "fully par" else ())
    return "block.x"
