"""`partition(ki)`: index-set splitting: iterations of ki whose predicates all hold run without them; the rest runs as before.

Before: seq 16 |ki| { if 16 * ko + ki < K { … } }       After: seq min(16, K - 16 * ko) |ki| { … }

The conditions on loops outside are tested once, before the loop (`texpr.schedule.rewrite.partition`). Innermost loops of a
thread are split by default where that pays; `partition(ki, off)` prevents it. Results are unchanged.
"""

from __future__ import annotations

from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Partition
from texpr.schedule.call import Call, Rule
from texpr.schedule.state import State


def _apply(call: Call) -> State:
    call.expect(1, 2)
    call.no_results()
    loop = call.loop(call.plain[0])
    wanted = call.word(call.plain[1], ("on", "off")) if len(call.plain) > 1 else "on"
    return call.state.changed(loop, lambda copy: marked(copy, Partition(wanted == "on")))


RULE = Rule("partition", "partition(LOOP, on|off)", _apply)
