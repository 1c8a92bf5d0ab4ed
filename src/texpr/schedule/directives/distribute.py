"""`distribute(i) -> (a, b)`: the loop over i around each statement of its body alone.

Before: par N |i| { x[i] = 0; seq K |k| { x[i] += y[i, k] } }
After:  par N |a| { x[i] = 0 }; par N |b| { seq K |k| { x[i] += y[i, k] } }

Without names, the copy around the deepest statement keeps the loop's own. Locals get an element for each iteration. Proved as
`reorder` is.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.schedule.call import Call, Rule
from texpr.schedule.nesting import Nesting
from texpr.schedule.order import require_order
from texpr.schedule.shape import free_loop
from texpr.schedule.state import State


def _apply(call: Call) -> State:
    call.expect(1)
    loop = free_loop(call, call.plain[0])
    statements = [s for s in loop.body if not isinstance(s, ir.New)]
    if len(statements) < 2:
        raise call.refuse("E0905", f"the loop over `{loop.sym.base}` has one statement only", at=call.plain[0])
    given = call.results(*(loop.sym.base for _ in statements)) if call.directive.results else ()
    deepest = max(range(len(statements)), key=lambda n: _depth(statements[n]))
    nesting = Nesting(call, call.state, {})
    made = nesting.split_at(loop.sym, [1] * len(statements), deepest)
    require_order(call.state, nesting.state, nesting.moved, loop, call.directive.span, call.rule.name)
    state = nesting.state
    for old, new in zip(made, given, strict=False):
        state = state.renamed(old, new)
    return state


def _depth(stmt: ir.Stmt) -> int:
    return max((1 + _depth(s) for block in ir.blocks(stmt) for s in block), default=0)


RULE = Rule("distribute", "distribute(LOOP) -> (NAME, …)", _apply)
