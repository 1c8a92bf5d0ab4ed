"""`swizzle(i, j, xor=8) -> (a, b)` or `swizzle(i, j, shift)`: iterations of j permuted, differently for each i.

Before: par M |i| { par 8 |j| { … j … } }       After: par M |a| { par 8 |b| { … b ^ (a % 8) … } }

Both loops are `par`: the order of a `seq` would change. On the memory of a local, `swizzle(As.d0, As.d1, xor=8)` moves the
elements of a row to other banks, differently for each row.
"""

from __future__ import annotations

from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.swizzle import Permutation, Shift, Swizzle, Xor
from texpr.ir import program as ir
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import freed, left_out, promise, updated
from texpr.schedule.rewrite.allocation import on_allocation
from texpr.schedule.rewrite.shape import free_loop, sizes_known
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, path_to, replaced
from texpr.support.record import replace


def _permutation(call: Call, kind: ir.Argument | None) -> Permutation:
    """The permutation for `xor=N` or the word `shift`."""
    count = call.key("xor")
    if (count is None) == (kind is None):
        raise call.wrong("needs either `xor=N` or `shift`")
    if count is None:
        assert kind is not None
        call.word(kind, ("shift",))
        return Shift()
    number = call.number(count, 2)
    if number & (number - 1):
        raise call.wrong(f"needs a power of two, not {number}", count)
    return Xor(number.bit_length() - 1)


def _require_multiple(call: Call, how: Permutation, domain: IterDomain) -> None:
    """An xor permutes complete groups of its size only."""
    if not isinstance(how, Xor) or sizes_known(call).multiple(domain.extent, 1 << how.bits):
        return
    extent, size = domain.extent, 1 << how.bits
    if extent.is_constant:
        reason = f"the extent of `{domain.sym.base}`, {extent}, is not a multiple of {size}"
        up = call.state.fresh(f"{domain.sym.base}_r")
        name = call.plain[1].value
        resized = f"resize({name}, to={-(-extent.constant // size) * size}) -> {up}"
        offers = call.instead(f"add iterations first: `{resized}`", lambda said: f"{resized}  {said.plain(1, up)}")
        raise call.refuse("E0914", reason, offers=offers)
    shown = str(extent) if str(extent).isidentifier() else f"({extent})"
    reason = f"the extent of `{domain.sym.base}`, {extent}, is not known to be a multiple of {size}"
    raise call.refuse("E0914", reason, offers=promise(call.state.function, f"where {shown} % {size} == 0"))


def _apply(call: Call) -> State:
    call.expect(2, 3, keys=("xor",))
    how = _permutation(call, call.plain[2] if len(call.plain) > 2 else None)

    def shuffled(graph: DomainGraph, old: tuple[str, ...], new: tuple[str, ...]) -> DomainGraph:
        _require_multiple(call, how, graph[old[1]])
        return graph.swizzle(old[0], old[1], how, (new[0], new[1]))

    found = on_allocation(call, 2, ("{}_s", "{}_t"), shuffled)
    if found is not None:
        return found
    outer, inner = (free_loop(call, argument) for argument in call.plain[:2])
    for loop in (outer, inner):
        if isinstance(loop, ir.Seq):
            reason = f"the loop over `{loop.sym.base}` is `seq`, and a swizzle changes the order of its iterations"
            alone = left_out(call.directive.span, "leave it out; iterations of a `par` have no order")
            offers = (*freed(loop, "if its iterations may come in any order, make it a `par`", updated(loop)), *alone)
            raise call.refuse("E0909", reason, help="iterations of a `par` have no order", offers=offers)
    state = call.state
    body = state.function.body
    _require_nested(call, outer, inner)
    one, other = state.domain(outer), state.domain(inner)
    _require_multiple(call, how, other)
    first, second = call.results(f"{outer.sym.base}_s", f"{inner.sym.base}_s")
    made = Swizzle(one, other, how, IterDomain(first, one.extent), IterDomain(second, other.extent))
    body = replaced(body, inner, lambda _: (replace(inner, sym=second),))
    grown = next(s for s in ir.walk(body) if isinstance(s, ir.Par) and s.sym == outer.sym)
    body = replaced(body, grown, lambda _: (replace(grown, sym=first),))
    return state.with_transform(made).with_body(body)


def _require_nested(call: Call, outer: ir.Loop, inner: ir.Loop) -> None:
    """The loops are perfectly nested, as far as statements go, and nothing around depends on the index of `outer`."""
    state = call.state
    names = f"`{outer.sym.base}` and `{inner.sym.base}`"
    path = path_to(outer.body, inner)
    if path is None:
        raise call.refuse("E0905", f"the loop over `{inner.sym.base}` is not inside the one over `{outer.sym.base}`")
    above, body = state.above(outer), state.function.body
    step: ir.Stmt = outer
    for below in path:
        if len(step.body if isinstance(step, ir.Par | ir.Seq) else ()) != 1:
            offers = (
                call.before("say before: %", f"distribute({exactly(step.sym.name, body)})")
                if isinstance(step, ir.Par | ir.Seq)
                else ()
            )
            raise call.refuse("E0905", f"the loops over {names} have other statements between them", offers=offers)
        if isinstance(below, ir.Par | ir.Seq) and above & below.extent.syms():
            reason = f"the extent of `{below.sym.base}`, {below.extent}, depends on `{outer.sym.base}`"
            raise call.refuse("E0905", reason)
        step = below


RULE = Rule("swizzle", "swizzle(OUTER, INNER, xor=N | shift) -> (OUTER, INNER)", _apply)
