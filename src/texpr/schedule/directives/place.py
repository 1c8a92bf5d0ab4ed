"""`place(v, shared)`: the placement of a `new`: shared, cluster (a part in the shared memory of each block of a cluster),
registers, lanes (registers that other lanes of a warp read by shuffles) or workspace (global memory that the caller
provides).

Results are unchanged. Refused in lowering (E0913) where threads that access its elements cannot reach them there.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.allocation import stage_offers
from texpr.schedule.state import State
from texpr.schedule.tree import replaced
from texpr.support.record import replace

SPACES = ("shared", "cluster", "registers", "lanes", "workspace")


def _apply(call: Call) -> State:
    call.expect(2)
    call.no_results()
    buffer = call.buffer(call.plain[0])
    space = call.word(call.plain[1], SPACES)
    body = call.state.function.body
    for new in ir.walk(body):
        if isinstance(new, ir.New) and new.buffer is buffer and buffer not in call.state.function.results:
            call.require_memory(space, call.plain[1])
            return call.state.with_body(replaced(body, new, lambda old: (_placed(old, space),)))
    reason = f"the memory of `{buffer.name}` is the caller's"
    raise call.refuse("E0913", reason, at=call.plain[0], offers=stage_offers(call, buffer.name, space))


def _placed(new: ir.Stmt, space: str) -> ir.Stmt:
    assert isinstance(new, ir.New)
    return replace(new, space=space)


RULE = Rule("place", "place(BUFFER, shared|cluster|registers|lanes|workspace)", _apply)
