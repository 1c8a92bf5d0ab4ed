"""`bind(bi, grid.x)`: the iterations of a `par` distributed over a level of the machine, one each.

Levels of a GPU: `grid.x` `grid.y` `grid.z`, `cluster.x` `cluster.y` `cluster.z`, `block.x` `block.y` `block.z`, or `warp` and
`lane` in place of the block's; of a CPU: `core`. The loops of the grid are outermost and perfectly nested, but for
values that are read in between (`let`), which blocks read then. Blocks of a
cluster share an iteration of the grid. Copies of a loop, made by distribution, are bound with it. Loops that are not bound,
or bound to `auto`, are mapped by the compiler. The iterations of a `reduce` may go to blocks of a cluster; to the grid where
the order of their updates is free: integers, extrema, and floating-point sums of a loop that is marked `#atomic`.
"""

from __future__ import annotations

from typing import TypeGuard

from texpr.ir import program as ir
from texpr.ir.program.marked import atomic, is_atomic, level_of, mark, marked, unmarked
from texpr.ir.program.marks import Bind, Unroll, Vector
from texpr.ir.program.updates import may_meet
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import Offers, freed, head, left_out, updated, words
from texpr.schedule.levels import AUTO, BLOCK, CLUSTERS, GRID, WARPS, levels, taken
from texpr.schedule.rewrite.lets import sunk
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, loops, path_to
from texpr.support.diagnostic import Note
from texpr.support.record import replace
from texpr.support.span import NOWHERE


def _apply(call: Call) -> State:
    call.expect(2)
    call.no_results()
    loop = call.loop(call.plain[0])
    level = call.word(call.plain[1], what="the name of a level")
    known = levels(call.state.target)
    if level == AUTO:
        return call.state.changed(loop, lambda copy: unmarked(copy, Bind))
    if level not in known:
        reason = f"{call.state.target.name} has no level `{level}`"
        raise call.refuse("E0908", reason, at=call.plain[1], help=f"its levels are {', '.join((*known, AUTO))}")
    _require_unbound(call, loop)
    if level in GRID and isinstance(loop, ir.Par):
        state, loop = sunk(call.state, loop)
        call = replace(call, state=state)
    for copy in call.state.copies(loop):
        if _meets(copy, level):
            _require_any_order(call, copy)
        elif not (
            isinstance(copy, ir.Par) and level in CLUSTERS and copy.reduce and not copy.fully
        ):  # their partial results are combined
            _require_par(call, copy)
        _require_free(call, copy, level)
    if level in (*CLUSTERS, *BLOCK, *WARPS):
        _require_threads(call, loop, level)
    else:
        _require_outermost(call, loop)

    def bound(copy: ir.Loop) -> ir.Loop:
        found = marked(copy, Bind(level, span=call.directive.span))
        return atomic(found) if _meets(copy, level) else found

    return call.state.changed(loop, bound)


def _meets(loop: ir.Loop, level: str) -> TypeGuard[ir.Par]:
    """Whether blocks that share a loop reduce into one element."""
    return isinstance(loop, ir.Par) and level in GRID and bool(loop.reduce) and not loop.fully


def _require_par(call: Call, loop: ir.Loop) -> None:
    name = loop.sym.base
    if isinstance(loop, ir.Seq):
        reason = f"the iterations of `{name}` come in order (`seq`), so threads cannot share them"
        help = "threads share the iterations of a `par`, which may come in any order"
        unbound = left_out(call.directive.span, f"leave the loop unbound; {help}")
        offers = (*freed(loop, "if its order is free, make it a `par`", updated(loop)), *unbound)
        raise call.refuse("E0909", reason, help=help, offers=offers)
    if loop.reduce or loop.fully:
        kind = "meet in a `reduce`" if loop.reduce else "are lanes already (`fully par`)"
        reason = f"the iterations of `{name}` {kind}; they are mapped by the compiler"
        raise call.refuse("E0909", reason, offers=_left_open(call))
    for other in (Unroll, Vector):
        if mark(loop, other):
            raise call.refuse("E0908", f"`{name}` is given to `{other.NAME}` already", at=call.plain[0])


def _require_any_order(call: Call, loop: ir.Par) -> None:
    """Requires that updates from several blocks may be in any order."""
    asked = is_atomic(loop)
    for stmt in ir.walk(loop.body):
        if isinstance(stmt, ir.Bind) and stmt.update is not None and stmt.targets[0].buffer in loop.reduce:
            target = stmt.targets[0]
            if len(stmt.targets) > 1 or not may_meet(stmt.update, target.dtype, asked):
                reason = f"blocks that share `{loop.sym.base}` meet in `{target.buffer.name}` in no order that is known"
                note = Note("this update", stmt.span)
                marked = f"par … |{loop.sym.base}| reduce({target.buffer.name}) #atomic"
                offers = words(head(loop) or NOWHERE, f"if any order will do, mark the loop: {marked}", "…#atomic ")
                raise call.refuse("E0909", reason, note, offers=(*offers, *_left_open(call)))


def _require_unbound(call: Call, loop: ir.Loop) -> None:
    """The loop has no level yet, neither itself nor by a copy."""
    if mark(loop, Bind) is None:
        return
    copies = ", ".join(f"`{copy.sym.base}`" for copy in call.state.copies(loop) if copy is not loop)
    reason = f"`{loop.sym.base}` is bound to `{level_of(loop)}` already" + (
        f", and so are its copies: {copies}" if copies else ""
    )
    help = "binding one of them binds them all" if copies else None
    raise call.refuse("E0908", reason, at=call.plain[0], help=help)


def _require_free(call: Call, loop: ir.Loop, level: str) -> None:
    """No other loop on the path has the level, and threads are named in one of the two ways."""
    body = call.state.function.body
    around = (path_to(body, loop) or ())[:-1]
    nest = {*loops((*around, loop)[:1])}
    for other in (*(s for s in around if isinstance(s, ir.Par | ir.Seq)), *loops(loop.body)):
        if taken(other) == level:
            how = "is bound to it" if level_of(other) else "has it by `fully par`"
            note = Note(f"`{other.sym.base}` {how} here", other.span)
            reason = f"`{level}` is taken by `{other.sym.base}`, with which `{loop.sym.base}` is nested"
            kind = level.partition(".")[0]
            alike = [each for each in levels(call.state.target) if each.startswith(f"{kind}.") and each != level]
            offers = [o for each in alike for o in call.instead("take another one: %", lambda s, each=each: s.plain(1, each))]
            raise call.refuse("E0908", reason, note, offers=tuple(offers))
    names = WARPS if level in BLOCK else BLOCK if level in WARPS else ()
    for other in loops(body):
        if level_of(other) in names or (other in nest and taken(other) in names):
            how = "is bound to" if level_of(other) else "is a `fully par`, and so has"
            reason = f"`{other.sym.base}` {how} `{taken(other)}`, which counts the same threads as `{level}`"
            raise call.refuse("E0908", reason, help="threads are named either by block.x, block.y, block.z or by warp, lane")


def _require_threads(call: Call, loop: ir.Loop, level: str) -> None:
    extent, target = loop.extent, call.state.target
    if not extent.is_constant:
        what = "blocks" if level in CLUSTERS else "threads"
        reason = f"the extent of `{loop.sym.base}`, {extent}, is not a constant, so it cannot be a number of {what}"
        raise call.refuse("E0910", reason, offers=_in_parts(call, loop))
    most = target.max_cluster if level in CLUSTERS else target.warp if level == "lane" else target.max_threads
    if not 1 <= extent.constant <= most:
        reason = f"`{loop.sym.base}` has {extent} iterations, and `{level}` takes 1 to {most}"
        raise call.refuse("E0910", reason, offers=_in_parts(call, loop))


def _require_outermost(call: Call, loop: ir.Loop) -> None:
    """Loops of the grid have only loops of the grid, or sequential loops of the host, around them."""
    for step in (path_to(call.state.function.body, loop) or ())[:-1]:
        bound = isinstance(step, ir.Par) and (level_of(step) or "").startswith(("grid", "core"))
        if not (bound or isinstance(step, ir.Seq)) or (bound and len(step.body if isinstance(step, ir.Par) else ()) != 1):
            inner = loop.sym.base
            outer = step.sym.base if isinstance(step, ir.Par) else "if"
            help = "a loop of the grid has only loops of the grid around it"
            reason = f"`{inner}` is not an outermost loop: `{outer}` is around it"
            raise call.refuse("E0905", reason, help=help, offers=_outer_first(call, step) if isinstance(step, ir.Par) else ())


def _left_open(call: Call) -> Offers:
    """The offer to leave a loop to the mapping."""
    return call.instead("leave it to the compiler: %", lambda said: said.plain(1, AUTO))


def _in_parts(call: Call, loop: ir.Loop) -> Offers:
    """The offer to split a loop, and to bind the inner part."""
    factor = call.state.target.max_cluster if str(call.plain[1].value) in CLUSTERS else call.state.target.warp
    return call.split(loop, factor, lambda said, outer, inner: said.plain(0, inner), "split it, and bind the inner part")


def _outer_first(call: Call, outer: ir.Par) -> Offers:
    """The offers to bind the enclosing loop first, to another dimension of the grid."""
    name = exactly(outer.sym.name, call.state.function.body)
    levels = [level for level in GRID if level != call.plain[1].value] or [str(call.plain[1].value)]
    return tuple(offer for level in levels for offer in call.before("say before: %", f"bind({name}, {level})"))


RULE = Rule("bind", "bind(LOOP, LEVEL)", _apply)
