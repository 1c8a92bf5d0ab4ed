"""`unroll(i)`: a loop of constant extent unrolled completely; `unroll(i, 4)`: by a factor of four.

Before: seq 4 |i| { … i … }       After: the same, marked; the machine code has … 0 … … 1 … … 2 … … 3 …, no loop

An array of a thread that only unrolled loops index lives in its registers.
"""

from __future__ import annotations

from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Unroll
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.tree import replaced

MOST = 256
"""The longest loop that is unrolled completely: beyond it, code outgrows the instruction cache."""


def _apply(call: Call) -> State:
    call.expect(1, 2)
    call.no_results()
    loop = free_loop(call, call.plain[0])
    factor = next((call.number(argument, 2) for argument in call.plain[1:]), None)
    extent = loop.extent
    if factor is None and not (extent.is_constant and extent.constant <= MOST):
        size = f"{extent} iterations are too many" if extent.is_constant else f"its extent, {extent}, is not a constant"
        reason = f"`{loop.sym.base}` cannot be unrolled wholly: {size}"
        raise call.refuse(
            "E0905", reason, at=call.plain[0], offers=call.instead("unroll a part: %", lambda said: said.plain(1, 4))
        )
    made = marked(loop, Unroll(factor, span=call.directive.span))
    return call.state.with_body(replaced(call.state.function.body, loop, lambda _: (made,)))


RULE = Rule("unroll", "unroll(LOOP) or unroll(LOOP, COUNT)", _apply)
