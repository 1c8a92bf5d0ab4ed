"""`vectorize(v)`: the iterations of a `par` of constant extent at once; `vectorize(i, 4) -> (o, v)` splits first.

Before: par 4 |v| { z[4 * t + v] = a * x[4 * t + v] }       After: one access of 16 bytes to each of x and z

Proved: accesses that depend on the loop are consecutive and aligned to the vector's bytes (`texpr.schedule.rewrite.vectors`);
or refused. Parameters declare their alignment (`align(16)`); of a result, the function requires it from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import expr
from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Vector
from texpr.ir.value import Buffer
from texpr.relation.collect import model
from texpr.schedule.call import Call, Rule
from texpr.schedule.directives.split import halves
from texpr.schedule.edits import Offers, begins_at, freed, left_out, promise, updated
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.rewrite.vectors import Lanes, Obstacle, examine
from texpr.schedule.stage.results import with_results
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, loops, replaced

MOST = 16
"""Lanes of the widest vector: 16 bytes of elements of one byte."""


def _apply(call: Call) -> State:
    call.expect(1, 2)
    loop = free_loop(call, call.plain[0], copying=len(call.plain) == 2)
    _require_par(call, loop)
    state = call.state
    if len(call.plain) == 2:
        state, loop = halves(call, loop, expr(call.number(call.plain[1], 2)))
    else:
        call.no_results()
    if not (loop.extent.is_constant and 2 <= loop.extent.constant <= MOST):
        reason = f"`{loop.sym.base}` has {loop.extent} iterations, and a vector has 2 to {MOST} lanes"
        raise call.refuse("E0911", reason, at=call.plain[-1], offers=_narrower(call))
    made = marked(loop, Vector(span=call.directive.span))
    state = state.with_body(replaced(state.function.body, loop, lambda _: (made,)))
    return state if state.target.has_vector_lanes else _aligned(call, state, made)


def _require_par(call: Call, loop: ir.Loop) -> None:
    if isinstance(loop, ir.Seq):
        reason = f"the iterations of `{loop.sym.base}` come in order (`seq`), so they cannot run at once"
        help = "lanes are iterations of a `par`, which may come in any order"
        alone = left_out(call.directive.span, f"leave it out; {help}")
        offers = (*freed(loop, "if its order is free, make it a `par`", updated(loop)), *alone)
        raise call.refuse("E0909", reason, help=help, offers=offers)


def _narrower(call: Call) -> Offers:
    """The offers of fewer lanes, the most first."""
    return tuple(
        offer
        for lanes in (4, 2, 8, 16)
        for offer in call.instead("split it: %", lambda said, lanes=lanes: said.plain(1, lanes))
    )


def _offers(call: Call, found: Obstacle) -> Offers:
    """The changes that would remove an obstacle."""
    offers: Offers = ()
    if found.promise is not None:
        offers = promise(call.state.function, found.promise)
    if found.begins is not None:
        buffer, size = found.begins
        offers = begins_at(buffer, size)
    if found.inner is not None:
        inner, own = exactly(found.inner.name, call.state.function.body), call.plain[0].value
        offers = call.before("say before: %", f"reorder({inner}, {own})")
    return (*offers, *_narrower(call)) if found.is_wide else offers


def _workspace(body: Sequence[ir.Stmt]) -> Iterator[Buffer]:
    """Locals that live across kernels: rows of one begin where its shape says, as those of a parameter."""
    for stmt in body:
        if isinstance(stmt, ir.New):
            yield stmt.buffer
        elif not isinstance(stmt, ir.Par):
            for block in ir.blocks(stmt):
                yield from _workspace(block)


def _aligned(call: Call, state: State, loop: ir.Loop) -> State:
    """`state`, if every access of the vector is proved one, with its results aligned accordingly."""
    function = materialise(state.alone(loop)).function
    known: dict[ir.Stmt, Known] = {instance.stmt: instance.known for instance in model(function).instances}
    plain = next(each for each in loops(function.body) if each.sym == loop.sym)
    needed: dict[str, int] = {}
    lanes = Lanes(plain, lambda stmt: known[stmt], asking=True, workspace=frozenset(_workspace(function.body)))
    for found in examine(lanes, plain.body):
        if isinstance(found, Obstacle):
            raise found.refusal(call.directive.span, loop, _offers(call, found))
        load, size = found
        if load.buffer.role == "result":
            needed[load.buffer.name] = max(size, needed.get(load.buffer.name, 0), load.buffer.align or 0)
    return with_results(state, needed)


RULE = Rule("vectorize", "vectorize(LOOP) or vectorize(LOOP, LANES) -> (OUTER, LANE)", _apply)
