"""`merge(i, j) -> m`: two nested loops become one that runs through both, the inner one fastest.

Before: par M |i| { par N |j| { … i … j … } }       After: par M * N |m| { … m / N … m % N … }

The loops are of one kind, perfectly nested, and the extent of the inner one does not depend on the outer. The order is kept.
"""

from __future__ import annotations

from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.merge import Merge
from texpr.ir import program as ir
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import promise
from texpr.schedule.rewrite.allocation import on_allocation
from texpr.schedule.rewrite.shape import free_loop, sizes_known
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, replaced
from texpr.support.record import replace


def _apply(call: Call) -> State:
    call.expect(2)
    found = on_allocation(call, 2, ("{}_m",), lambda graph, old, new: graph.merge(old[0], old[1], new[0]))
    if found is not None:
        return found
    outer, inner = (free_loop(call, argument, copying=True) for argument in call.plain)
    names = f"`{outer.sym.base}` and `{inner.sym.base}`"
    if len(outer.body) != 1 or outer.body[0] is not inner:
        one, other = (exactly(loop.sym.name, call.state.function.body) for loop in (outer, inner))
        turned = call.instead("the outer one comes first: %", lambda said: said.plain(0, other).plain(1, one))
        offers = turned if inner.body[:1] == (outer,) else call.before("say before: %", f"distribute({one})")
        help = "`reorder` and `distribute` are what brings loops together"
        raise call.refuse("E0905", f"the loops over {names} are not directly nested", help=help, offers=offers)
    if (type(outer), outer.ieee, {*outer.reduce}) != (type(inner), inner.ieee, {*inner.reduce}):
        kinds = " and ".join(f"`{loop.sym.base}` {_kind(loop)}" for loop in (outer, inner))
        raise call.refuse("E0905", f"the loops over {names} are not of one kind: {kinds}")
    state = call.state
    one, other = state.domain(outer), state.domain(inner)
    if state.above(outer) & other.extent.syms():
        reason = f"the extent of `{inner.sym.base}`, {inner.extent}, depends on `{outer.sym.base}`"
        raise call.refuse("E0905", reason, help="only loops over a rectangle can be merged")
    _require_extents(call, one, other)
    (name,) = call.results(f"{outer.sym.base}_{inner.sym.base}")
    merged = IterDomain(name, one.extent * other.extent)
    made = replace(outer, sym=name, extent=merged.extent, body=inner.body)
    return state.with_transform(Merge(one, other, merged)).with_body(replaced(state.function.body, outer, lambda _: (made,)))


def _kind(loop: ir.Loop) -> str:
    """What the loop is, for a message."""
    freed = f" reduce({', '.join(b.name for b in loop.reduce)})" + " #ieee" * loop.ieee if loop.reduce else ""
    return f"is a `{'par' if isinstance(loop, ir.Par) else 'seq'}{freed}`"


def _require_extents(call: Call, outer: IterDomain, inner: IterDomain) -> None:
    """Requires extents ≥ 0: the product of two negative ones would be positive."""
    known = sizes_known(call)
    if not (known.nonnegative(outer.extent) or known.nonnegative(inner.extent)):
        reason = f"the extents {outer.extent} and {inner.extent} may both be negative, and their product positive"
        raise call.refuse("E0914", reason, offers=promise(call.state.function, f"where {inner.extent} >= 0"))


RULE = Rule("merge", "merge(OUTER, INNER) -> NAME", _apply)
