"""`unguard(ki)`: iterations of ki that are holes compute, too, on the fills of staged buffers: proved to change nothing.

Before: seq 32 |ki| { if 32 * ko + ki < K { acc += As[ti, ki] * Bs[ki, tj] } }
After:  seq 32 |ki| { acc += As[ti, ki] * Bs[ki, tj] }

Needs copies that fill with the neutral value (`stage(…, fill=zero)`), so that they are strong; copies without `fill=` get it.
Refused where a hole could affect a result.
"""

from __future__ import annotations

from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Unguard
from texpr.schedule.call import Call, Rule
from texpr.schedule.holes.fills import derived
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.state import State


def _apply(call: Call) -> State:
    call.expect(1)
    call.no_results()
    loop = call.loop(call.plain[0])
    state = derived(call.state, loop).changed(loop, lambda copy: marked(copy, Unguard(span=call.directive.span)))
    materialise(state)  # which proves it, or refuses
    return state


RULE = Rule("unguard", "unguard(LOOP)", _apply)
