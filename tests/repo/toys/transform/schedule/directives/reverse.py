"""`reverse(i) -> r`: the iterations of a `par`, the last one first.

Before: par N |i| { … i … }       After: par N |r| { … N - 1 - r … }
"""

from __future__ import annotations

from texpr.domain.transforms.reverse import Reverse

from texpr.domain.iterdomain import IterDomain
from texpr.ir import program as ir
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.tree import replaced
from texpr.support.record import replace


def _apply(call: Call) -> State:
    call.expect(1)
    loop = free_loop(call, call.plain[0])
    if isinstance(loop, ir.Seq):
        raise call.refuse("E0905", f"the loop over `{loop.sym.base}` is a `seq`, whose order stays", at=call.plain[0])
    (name,) = call.results(f"{loop.sym.base}_r")
    whole = call.state.domain(loop)
    made = replace(loop, sym=name)
    state = call.state.with_transform(Reverse(whole, IterDomain(name, whole.extent)))
    return state.with_body(replaced(state.function.body, loop, lambda _: (made,)))


RULE = Rule("reverse", "reverse(LOOP) -> NAME", _apply)
