"""`resize(i, l, r) -> p`: the loop over i gets l iterations more before and r more after; they are holes.

Before: par N |i| { … i … }       After: par N + l + r |p| { … p - l … }, where that is in 0..N

Negative numbers drop iterations: legal where those are holes of an earlier transform, otherwise refused with an index.
`resize(i, to=n)` makes the extent n, independent of the loops around it: a triangle becomes a square. On the memory of a
local, `resize(As.d1, 0, 1)` pads its rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import ZERO, Expr
from texpr.domain.coverage import Verdict, coverage
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.resize import Resize
from texpr.ir import program as ir
from texpr.relation.facts import in_loop, known
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.allocation import no_less, on_allocation, require_padding
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.rewrite.shape import free_loop, sizes_known
from texpr.schedule.state import State
from texpr.schedule.tree import Body, path_to, replaced
from texpr.support.record import replace


def _apply(call: Call) -> State:
    to = call.key("to")
    if to is not None:
        return _as_long_as(call, to)
    call.expect(3)
    before, after = (call.size(argument) for argument in call.plain[1:])
    found = on_allocation(call, 1, ("{}_r",), lambda graph, old, new: graph.resize(old[0], before, after, new[0]))
    if found is not None:
        require_padding(call, before, after)
        return found
    loop = free_loop(call, call.plain[0])
    result, made = _resized(call, loop, before, after)
    known = sizes_known(call)
    if not (known.nonnegative(before) and known.nonnegative(after)):
        _require_whole(call, result, made)
    return result


def _as_long_as(call: Call, to: ir.Argument) -> State:
    """The loop with the extent `to`, which is at least its extent in every iteration around it."""
    call.expect(1, keys=("to",))
    loop, extent = free_loop(call, call.plain[0]), call.size(to)
    path = path_to(call.state.function.body, loop) or ()
    around = [call.state.domain(s) for s in path if isinstance(s, ir.Par | ir.Seq) and s is not loop]
    facts = [fact for domain in around for fact in in_loop(domain.sym, domain.extent)]
    old = call.state.domain(loop)
    if not known((*given(call.state.function), *facts)).nonnegative(extent - old.extent):
        reason = f"`{loop.sym.base}` has {old.extent} iterations, which may be more than {extent}"
        free = not old.extent.syms() - set(call.state.function.sizes)
        offers = call.instead("say that: %", lambda said: said.having("to", old.extent)) if free else ()
        raise call.refuse(
            "E0914",
            reason,
            at=to,
            help=f"an extent that holds them all is {old.extent}" if free else "an extent has to hold them all",
            offers=offers,
        )
    return _resized(call, loop, ZERO, extent - old.extent)[0]


def _resized(call: Call, loop: ir.Loop, before: Expr, after: Expr) -> tuple[State, ir.Loop]:
    (name,) = call.results(f"{loop.sym.base}_r")
    state = call.state
    old = state.domain(loop)
    new = IterDomain(name, old.extent + before + after)
    made = replace(loop, sym=name, extent=new.extent)
    result = state.with_transform(Resize(old, before, after, new))
    return result.with_body(replaced(state.function.body, loop, lambda _: (made,))), made


def _require_whole(call: Call, state: State, loop: ir.Loop) -> None:
    """The iterations dropped by a negative expand must be holes: no logical index may be dropped."""
    around = tuple(s for s in path_to(state.function.body, loop) or () if isinstance(s, ir.Par | ir.Seq))
    for inside in dict.fromkeys(_ways(loop.body)):
        graph = state.graph((*around, *inside))
        found = coverage(graph, sizes_known(call)).dropped
        if found.verdict is Verdict.SOME:
            names = ", ".join(d.sym.base for d in graph.logical)
            raise call.refuse("E0915", f"this leaves out the iteration ({names}) = {found}", offers=no_less(call))
        if found.verdict is Verdict.OPEN:
            raise call.refuse("E0914", "cannot decide whether this leaves iterations out", offers=no_less(call))


def _ways(body: Body, way: tuple[ir.Loop, ...] = ()) -> Iterator[tuple[ir.Loop, ...]]:
    """The loops on the path to each computing statement of `body`, after those of `way`."""
    for stmt in body:
        match stmt:
            case ir.Par() | ir.Seq():
                yield from _ways(stmt.body, (*way, stmt))
            case ir.New() | ir.Let():
                pass
            case _:
                yield way
                for block in ir.blocks(stmt):
                    yield from _ways(block, way)


RULE = Rule("resize", "resize(LOOP, LEFT, RIGHT | to=EXTENT) -> NAME", _apply)
