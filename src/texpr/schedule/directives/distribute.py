"""`distribute(i) -> (a, b)`: loop fission, a loop over i for each statement of its body; `distribute(i, 1, 3) -> (a, b)`: for
the first one, and for the next three.

Before: par N |i| { x[i] = 0; seq K |k| { x[i] += y[i, k] } }
After:  par N |a| { x[i] = 0 }; par N |b| { seq K |k| { x[i] += y[i, k] } }

Without names, the copy around the deepest statement keeps the loop's name. Locals that several of the loops access get an
element for each iteration (expansion). Proved as `reorder` is.
"""

from __future__ import annotations

from itertools import islice

from texpr.ir import program as ir
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.nesting import Nesting
from texpr.schedule.rewrite.order import require_order
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State

MOST = 64
"""The most loops that one may become at a time."""


def _apply(call: Call) -> State:
    call.expect(1, 1 + MOST)
    loop = free_loop(call, call.plain[0])
    statements = [s for s in loop.body if not isinstance(s, ir.New)]
    if len(statements) < 2:
        raise call.refuse("E0905", f"the loop over `{loop.sym.base}` has one statement only", at=call.plain[0])
    sizes = _sizes(call, loop, len(statements))
    given = call.results(*(loop.sym.base for _ in sizes)) if call.directive.results else ()
    depths = map(_depth, statements)
    deepest = [max(islice(depths, size)) for size in sizes]
    nesting = Nesting(call, call.state, {})
    made = nesting.split_at(loop.sym, sizes, deepest.index(max(deepest)))
    require_order(call.state, nesting.state, nesting.moved, loop, call.directive.span, call.rule.name)
    state = nesting.state
    for old, new in zip(made, given, strict=False):
        state = state.renamed(old, new)
    return state


def _sizes(call: Call, loop: ir.Loop, statements: int) -> list[int]:
    """The number of statements in each loop."""
    sizes = [call.number(each) for each in call.plain[1:]] or [1] * statements
    if len(sizes) < 2 or sum(sizes) != statements:
        reason = f"the loop over `{loop.sym.base}` has {statements} statements, `new`s not counted"
        help = "the numbers are those of statements in each of the new loops: two or more, which add up to that"
        raise call.refuse("E0905", reason, at=call.plain[1], help=help)
    return sizes


def _depth(stmt: ir.Stmt) -> int:
    return max((1 + _depth(s) for block in ir.blocks(stmt) for s in block), default=0)


RULE = Rule("distribute", "distribute(LOOP) or distribute(LOOP, STATEMENTS, …) -> (NAME, …)", _apply)
