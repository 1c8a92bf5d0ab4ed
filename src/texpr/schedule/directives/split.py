"""`split(i, 128) -> (o, t)`: the loop over i becomes one over quotients and one over remainders.

Before: par N |i| { … i … }       After: par (N + 127) / 128 |o| { par 128 |t| { … o * 128 + t … } }, where that is < N

`split(i, parts=4)` gives the outer extent instead. Always legal: the order of iterations is kept; holes are guarded.
"""

from __future__ import annotations

from texpr.affine.expr import Expr
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.split import Split
from texpr.ir import program as ir
from texpr.ir.program.marked import unmarked
from texpr.ir.program.marks import Async
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.allocation import on_allocation
from texpr.schedule.rewrite.shape import free_loop, positive
from texpr.schedule.state import State
from texpr.schedule.tree import replaced
from texpr.support.record import replace


def _apply(call: Call) -> State:
    parts = call.key("parts")
    call.expect(1 if parts else 2, keys=("parts",))
    factor = positive(call, parts or call.plain[1])
    found = on_allocation(
        call,
        1,
        ("{}_o", "{}_i"),
        lambda graph, old, new: graph.split(old[0], factor, (new[0], new[1]), outer=parts is not None),
    )
    return found or halves(call, free_loop(call, call.plain[0], copying=True), factor, parts is not None)[0]


def halves(call: Call, loop: ir.Loop, factor: Expr, parts: bool = False) -> tuple[State, ir.Loop]:
    """The state after `loop` was split by `factor` (or into that many parts), and the inner one of the two loops."""
    first, second = call.results(f"{loop.sym.base}_o", f"{loop.sym.base}_i")
    state = call.state
    whole = state.domain(loop)
    other = (whole.extent + (factor - 1)) // factor
    outer, inner = (factor, other) if parts else (other, factor)
    split = Split(whole, IterDomain(first, outer), IterDomain(second, inner))
    below = unmarked(replace(loop, sym=second, extent=inner, label=None), Async)
    made = replace(loop, sym=first, extent=outer, body=(below,))
    return state.with_transform(split).with_body(replaced(state.function.body, loop, lambda _: (made,))), below


RULE = Rule("split", "split(LOOP, FACTOR | parts=COUNT) -> (OUTER, INNER)", _apply)
