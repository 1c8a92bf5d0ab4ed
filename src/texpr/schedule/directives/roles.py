"""`roles(ko, copy=1, compute=2)`: one warp copies what a pipelined loop uses, two warpgroups do all else.

Before: seq E + 3 |ko| { if ko < E { copy As[ko % 4] }  if ko >= 3 { … As[(ko - 3) % 4, …] … } }
After:  the same, marked; in the kernel warp 8 copies, and warps 0 to 7 compute, each in a loop of its own

Between them are barriers in shared memory for full and for empty slots, which follow from the dependences
(docs/theory/channels.md). No order changes, so nothing has to be proved of the program; the kernel is proved as all are.
"""

from __future__ import annotations

from texpr.ir.program.marked import mark, marked
from texpr.ir.program.marks import Pipeline, Roles
from texpr.isa.cuda import TMA, WARPGROUP
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import left_out
from texpr.schedule.state import State
from texpr.schedule.tree import replaced

MOST = 4
"""The most warps that copy: one thread of them does."""


def _apply(call: Call) -> State:
    call.expect(1, keys=("copy", "compute"))
    call.no_results()
    found = call.key("copy"), call.key("compute")
    warps, groups = (1 if each is None else call.number(each) for each in found)
    if warps > MOST:
        raise call.wrong(f"gives copies at most {MOST} warps, not {warps}", found[0])
    loop, target = call.loop(call.plain[0]), call.state.target
    if TMA not in target.features:
        reason = f"{target.name} has no engine that copies for other warps"
        raise call.refuse("E0920", reason, offers=left_out(call.directive.span))
    if not mark(loop, Pipeline):
        reason = f"`{loop.sym.base}` copies nothing ahead, which warps of their own could do"
        offers = (*call.before("copy ahead first: %", f"pipeline({loop.sym.base}, stages=4)"), *left_out(call.directive.span))
        raise call.refuse("E0920", reason, at=call.plain[0], offers=offers)
    made = marked(loop, Roles(warps, groups * (WARPGROUP // target.warp), span=call.directive.span))
    return call.state.with_body(replaced(call.state.function.body, loop, lambda _: (made,)))


RULE = Rule("roles", "roles(LOOP, copy=WARPS, compute=WARPGROUPS)", _apply)
