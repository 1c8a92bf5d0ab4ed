"""`reorder(bi, bj, ko, ti, tj)`: loop interchange: the named loops, which lie on one path, in this order from outside in.

Loops that are not perfectly nested are distributed first, and locals get an element for each iteration
(`texpr.schedule.rewrite.nesting`); the copies that this makes get the same order. Proved: every dependence keeps its order
(`texpr.schedule.rewrite.order`), or refused with two instances.
"""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.allocation import on_allocation
from texpr.schedule.rewrite.nesting import Nesting, chain
from texpr.schedule.rewrite.order import require_order
from texpr.schedule.state import State


def _apply(call: Call) -> State:
    call.expect(2, 64)
    call.no_results()
    found = on_allocation(call, len(call.plain), (), lambda graph, old, new: graph.reorder(*old))
    if found is not None:
        return found
    named = [call.loop(argument) for argument in call.plain]
    if len({loop.sym for loop in named}) < len(named):
        raise call.wrong("names a loop twice")
    path = chain(call, call.state, named)
    for loop in path:
        if isinstance(loop, ir.Par) and loop.fully:
            raise call.refuse("E0905", f"the loop over `{loop.sym.base}` is `fully par`, and stays where it is")
    wanted = iter(loop.sym for loop in named)
    chosen = {loop.sym for loop in named}
    target = [next(wanted) if loop.sym in chosen else loop.sym for loop in path]
    nesting = Nesting(call, call.state, {})
    order = [loop.sym for loop in path]
    for place, sym in enumerate(target):
        _raise_to(nesting, order, order.index(sym), place)
    nesting.sort_copies([nesting.state.domain(nesting.loop(sym)).sym for sym in target])
    if any(isinstance(loop, ir.Seq) for loop in path) or nesting.moved or _imperfect(path):
        require_order(call.state, nesting.state, nesting.moved, path[0], call.directive.span, call.rule.name)
    return nesting.state


def _raise_to(nesting: Nesting, order: list[Sym], at: int, place: int) -> None:
    while at > place:
        nesting.interchange(order[at - 1], order[at])
        order[at - 1], order[at] = order[at], order[at - 1]
        at -= 1


def _imperfect(path: tuple[ir.Loop, ...]) -> bool:
    return any(len(loop.body) != 1 for loop in path[:-1])


RULE = Rule("reorder", "reorder(LOOP, LOOP, …)", _apply)
