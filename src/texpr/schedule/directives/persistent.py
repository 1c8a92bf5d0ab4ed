"""`persistent(j, blocks=4) -> (block, turn)`: four blocks share the iterations of j, each goes through every fourth of them.

Before: par E |j| { … j … }
After:  par 4 |block| { seq (E - block + 3) / 4 |turn| { … block + 4 * turn … } }

The loop over blocks is for `bind`; that over turns stays sequential. A ring of `pipeline` in it goes on from one turn to the
next: phases of its slots are counted through, so with `roles` copies of the next tile begin while results of this one leave.
Always legal: each iteration is that of one block in one turn, and iterations of a `par` may come in any order.
"""

from __future__ import annotations

from texpr.affine.expr import expr
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.split import Split
from texpr.ir import program as ir
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Persistent
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import left_out
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.tree import replaced


def _apply(call: Call) -> State:
    call.expect(1, keys=("blocks",))
    asked = call.key("blocks")
    if asked is None:
        raise call.wrong("needs `blocks=N`: how many blocks share the iterations")
    count, loop = call.number(asked), free_loop(call, call.plain[0])
    if not isinstance(loop, ir.Par) or loop.reduce:
        how = "meet in a `reduce`" if isinstance(loop, ir.Par) else "come in order (`seq`)"
        reason = f"the iterations of `{loop.sym.base}` {how}, so blocks cannot share them"
        raise call.refuse("E0909", reason, at=call.plain[0], offers=left_out(call.directive.span))
    block, turn = call.results(f"{loop.sym.base}_b", f"{loop.sym.base}_t")
    whole = call.state.domain(loop)
    turns = IterDomain(turn, (whole.extent + (count - 1)) // count)
    split = Split(whole, turns, IterDomain(block, expr(count)))
    ended = (loop.extent - expr(block) + (count - 1)) // count
    inner = ir.Seq(turn, ended, loop.body, span=loop.span)
    made = ir.Par(block, expr(count), (marked(inner, Persistent(span=call.directive.span)),), span=loop.span)
    return call.state.with_transform(split).with_body(replaced(call.state.function.body, loop, lambda _: (made,)))


RULE = Rule("persistent", "persistent(LOOP, blocks=N) -> (BLOCK, TURN)", _apply)
