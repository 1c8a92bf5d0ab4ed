"""`overlap(kb, dv, behind=js)`: what an iteration of kb does from dv on runs a turn late, behind js of the next iteration.

Before: seq E |kb| { … js …  softmax  … dv … }
After:  seq E + 1 |kb| { … js of kb … dv of kb − 1 …  softmax of kb }, without what there is not in the first and the last turn

So what goes on by itself, as a product of a warpgroup, does so while lanes do something else. Proved: no dependence runs
backwards; or refused (`texpr.schedule.turns.overlap`). The rewrite is made at the end of the schedule, before rings are.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.marked import level_of, mark, marked
from texpr.ir.program.marks import Overlap
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import left_out
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.rewrite.ring import pipelined
from texpr.schedule.state import State
from texpr.schedule.tree import replaced
from texpr.schedule.turns.overlap import overlapped


def _apply(call: Call) -> State:
    call.expect(2, keys=("behind",))
    call.no_results()
    behind = call.key("behind")
    if behind is None:
        raise call.wrong("needs `behind=LOOP`: what of the next iteration comes before")
    loop = call.loop(call.plain[0])
    _require_in_order(call, loop)
    late, first = call.loop(call.plain[1]), call.loop(behind)
    made = marked(loop, Overlap(late.sym.name, first.sym.name, span=call.directive.span))
    state = call.state.with_body(replaced(call.state.function.body, loop, lambda _: (made,)))
    pipelined(overlapped(materialise(state.alone(made)).function))
    return state


def _require_in_order(call: Call, loop: ir.Loop) -> None:
    level, offers = level_of(loop), left_out(call.directive.span)
    if level is not None or (isinstance(loop, ir.Par) and loop.fully):
        shared = f"shared out over `{level}`" if level else "lanes (`fully par`)"
        reason = f"the iterations of `{loop.sym.base}` are {shared}, so none comes before another"
        raise call.refuse("E0909", reason, at=call.plain[0], offers=offers)
    if mark(loop, Overlap):
        reason = f"turns of `{loop.sym.base}` overlap already"
        raise call.refuse("E0905", reason, at=call.plain[0], offers=offers)


RULE = Rule("overlap", "overlap(LOOP, LOOP, behind=LOOP)", _apply)
