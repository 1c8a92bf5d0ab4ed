"""`serial(k)`: a `par` becomes a `seq`.

Before: par N |j| { par K |k| reduce(y) { y[j] += x[j, k] } }
After:  par N |j| { seq K |k| reduce(y) { y[j] += x[j, k] } }

Any order is right for a `par`, so this is always legal. A parallel reduction becomes one thread's sum, and the loop may be
reordered and split around tiles as others are.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.tree import replaced


def _apply(call: Call) -> State:
    call.expect(1)
    call.no_results()
    loop = free_loop(call, call.plain[0])
    if isinstance(loop, ir.Seq):
        raise call.refuse("E0905", f"the loop over `{loop.sym.base}` is a `seq` already", at=call.plain[0])
    return call.state.with_body(replaced(call.state.function.body, loop, lambda _: (ir.in_turn(loop),)))


RULE = Rule("serial", "serial(LOOP)", _apply)
