"""Memory of an iteration, where groups of warps take iterations in turn: each group has its own.

    seq E |t| #alternate(2) {                     seq E |t| #alternate(2) {
        new shared s: f32[64]                         new shared s: f32[2, 64]
        … s[a] …                           →          … s[t % 2, a] …
    }                                             }

It is the same program: `s` is fresh in each iteration, which uses one slot of it. What a ring fills ahead (`rewrite.ring`) is
of all groups, and has slots of its own.
"""

from __future__ import annotations

from texpr.affine.expr import expr
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Alternate, Roles
from texpr.schedule.edits import left_out
from texpr.schedule.rewrite.ring import begin_of, ring_of, slotted, written
from texpr.schedule.tree import Body, loops, replaced
from texpr.support.diagnostic import limitation
from texpr.support.record import replace


def alternated(function: ir.Function) -> ir.Function:
    """`function`, with a slot for each group of what an iteration of a loop marked `#alternate` has in shared memory. Raises
    Limitation where no warps of their own copy in it."""
    for loop in [each for each in loops(function.body) if mark(each, Alternate)]:
        made = _alternated(loop)
        function = replace(function, body=replaced(function.body, loop, lambda _, made=made: (made,)))
    return function


def _alternated(loop: ir.Loop) -> ir.Loop:
    asked = mark(loop, Alternate)
    assert asked is not None
    if not any(mark(each, Roles) for each in loops(loop.body)):
        why = f"no warps of their own copy for the groups that take iterations of `{loop.sym.base}` in turn"
        raise limitation("E0920", asked.span, why, offers=left_out(asked.span))
    ahead = {b for each in loops(loop.body) if mark(each, Roles) for stmt in each.body for b in written(stmt)}
    own = [s for s in ir.walk(loop.body) if isinstance(s, ir.New) and s.space == "shared" and s.buffer not in ahead]
    slots = {new.buffer: ring_of(new.buffer, asked.groups, begin_of(loop, new.buffer)) for new in own}
    made = {new: replace(new, buffer=slots[new.buffer]) for new in own}
    return replace(loop, body=slotted(_made(loop.body, made), slots, expr(loop.sym) % asked.groups))


def _made(body: Body, made: dict[ir.New, ir.New]) -> Body:
    """`body` with other `new`s."""
    for old, new in made.items():
        body = replaced(body, old, lambda _, new=new: (new,))
    return body
