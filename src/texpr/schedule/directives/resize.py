"""`resize(i, l, r) -> p`: the loop over i gets l iterations more before and r more after; they are holes.

Before: par N |i| { … i … }       After: par N + l + r |p| { … p - l … }, where that is in 0..N

Negative numbers leave iterations out again: legal where those are holes of an earlier transform, refused with an index else.
On the memory of a local, `resize(As.d1, 0, 1)` pads its rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.domain.coverage import Verdict, coverage
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.resize import Resize
from texpr.ir import program as ir
from texpr.schedule.allocation import on_allocation, require_padding
from texpr.schedule.call import Call, Rule
from texpr.schedule.shape import free_loop, sizes_known
from texpr.schedule.state import State
from texpr.schedule.tree import Body, path_to, replaced
from texpr.support.record import replace


def _apply(call: Call) -> State:
    call.expect(3)
    before, after = (call.size(argument) for argument in call.plain[1:])
    found = on_allocation(call, 1, ("{}_r",), lambda graph, old, new: graph.resize(old[0], before, after, new[0]))
    if found is not None:
        require_padding(call, before, after)
        return found
    loop = free_loop(call, call.plain[0])
    (name,) = call.results(f"{loop.sym.base}_r")
    state = call.state
    old = state.domain(loop)
    new = IterDomain(name, old.extent + before + after)
    made = replace(loop, sym=name, extent=new.extent)
    result = state.with_transform(Resize(old, before, after, new))
    result = result.with_body(replaced(state.function.body, loop, lambda _: (made,)))
    known = sizes_known(call)
    if not (known.nonnegative(before) and known.nonnegative(after)):
        _require_whole(call, result, made)
    return result


def _require_whole(call: Call, state: State, loop: ir.Loop) -> None:
    """What a negative expand leaves out must be holes: no logical index may be dropped."""
    around = tuple(s for s in path_to(state.function.body, loop) or () if isinstance(s, ir.Par | ir.Seq))
    for inside in dict.fromkeys(_ways(loop.body)):
        graph = state.graph((*around, *inside))
        found = coverage(graph, sizes_known(call)).dropped
        if found.verdict is Verdict.SOME:
            names = ", ".join(d.sym.base for d in graph.logical)
            raise call.refuse("E0915", f"this leaves out the iteration ({names}) = {found}", help="use numbers of 0 or more")
        if found.verdict is Verdict.OPEN:
            raise call.refuse("E0914", "cannot decide whether this leaves iterations out", help="use numbers of 0 or more")


def _ways(body: Body, way: tuple[ir.Loop, ...] = ()) -> Iterator[tuple[ir.Loop, ...]]:
    """The loops on the way to each statement of `body` that does something, after those of `way`."""
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


RULE = Rule("resize", "resize(LOOP, LEFT, RIGHT) -> NAME", _apply)
