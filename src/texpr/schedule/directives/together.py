"""`together(t)`: all steps of a host loop in one launch, where all blocks are resident at once; `together(t, off)`: never.

A `seq` outside of every `par`, with a `par` in it, is a loop of the host: each step is a launch, or all of them are one, with
a grid barrier after each step. Results are unchanged. Loops are fused so by default where possible; with the directive, a
failure is reported (`texpr.lowering.host.together`).
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Together
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import left_out
from texpr.schedule.state import State
from texpr.schedule.tree import path_to


def _apply(call: Call) -> State:
    call.expect(1, 2)
    call.no_results()
    subject, *more = call.plain
    loop, target = call.loop(subject), call.state.target
    wanted = call.word(more[0], ("on", "off")) if more else "on"
    name = loop.sym.base
    if not target.is_launched:
        raise call.refuse("E0908", f"{target.name} launches nothing", offers=left_out(call.directive.span))
    around = path_to(call.state.function.body, loop) or ()
    inside = any(isinstance(stmt, ir.Par) for stmt in around if stmt is not loop)
    if not isinstance(loop, ir.Seq) or inside or not any(isinstance(stmt, ir.Par) for stmt in ir.walk(loop.body)):
        why = (
            "it is a `par`" if isinstance(loop, ir.Par) else "it is inside of a `par`" if inside else "there is no `par` in it"
        )
        reason = f"`{name}` is no loop of the host: {why}"
        raise call.refuse(
            "E0918",
            reason,
            at=subject,
            help="it is for a `seq` outside of every `par`, with a `par` in it",
            offers=left_out(call.directive.span),
        )
    return call.state.changed(loop, lambda copy: marked(copy, Together(wanted == "on", span=call.directive.span)))


RULE = Rule("together", "together(LOOP, on|off)", _apply)
