"""`skip(k)`: a sum is skipped where a block asks for none of its results.

Before: seq K |k| reduce(s) { s[i, j] += … }   par 8 |i| { par 8 |j| { if 8 * bj + j <= 8 * bi + i { C[…] += s[i, j] } } }
After:  if 8 * bj <= 8 * bi + 7 { seq K |k| reduce(s) { s[i, j] += … } }   …

What reads the sum is behind it, each in an `if` on indices. Or each update is in one: then the loop ends where no later
iteration has an update. The rewrite is made at the end of the schedule
(`texpr.schedule.rewrite.skipped`).
"""

from __future__ import annotations

from texpr.affine.expr import Expr
from texpr.ir import program as ir
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Skip
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import left_out
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.rewrite.skipped import ended, skipped
from texpr.schedule.state import State
from texpr.schedule.tree import replaced


def _apply(call: Call) -> State:
    call.expect(1)
    call.no_results()
    loop = call.loop(call.plain[0])
    if not isinstance(loop, ir.Seq):
        raise call.refuse(
            "E0905", f"the loop over `{loop.sym.base}` is a `par`, and a sum in order is skipped", at=call.plain[0]
        )
    made = marked(loop, Skip(span=call.directive.span))
    state = call.state.with_body(replaced(call.state.function.body, loop, lambda _: (made,)))
    before = materialise(state.alone(made)).function
    shorter = ended(before)
    if _ifs(skipped(shorter)) == _ifs(before) and _extents(shorter) == _extents(before):
        reason = f"what the loop over `{loop.sym.base}` makes is not read in an `if` on indices alone, behind it"
        raise call.refuse("E0905", reason, offers=left_out(call.directive.span))
    return state


def _ifs(function: ir.Function) -> int:
    return sum(isinstance(stmt, ir.If) for stmt in ir.walk(function.body))


def _extents(function: ir.Function) -> list[Expr]:
    return [loop.extent for loop in ir.walk(function.body) if isinstance(loop, ir.Seq)]


RULE = Rule("skip", "skip(LOOP)", _apply)
"""Where tiles are done whole of which a part is asked for."""
