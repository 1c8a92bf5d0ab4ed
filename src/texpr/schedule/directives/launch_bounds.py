"""`launch_bounds(2)`: the blocks that should be resident on a multiprocessor; the kernel's compiler limits registers
accordingly.

The threads of a block are known from the bindings; CUDA's `__launch_bounds__(threads, blocks)` gets both.
"""

from __future__ import annotations

from texpr.schedule.call import Call, Rule
from texpr.schedule.state import State
from texpr.support.record import replace


def _apply(call: Call) -> State:
    call.expect(1)
    call.no_results()
    target = call.state.target
    if not target.has_blocks:
        raise call.refuse("E0908", f"{target.name} has no blocks of threads")
    blocks = call.number(call.plain[0])
    if blocks > target.resident_blocks:
        reason = f"a multiprocessor of {target.name} holds {target.resident_blocks} blocks at most, not {blocks}"
        offers = call.instead("ask for %", lambda said: said.plain(0, target.resident_blocks))
        raise call.refuse("E0910", reason, at=call.plain[0], offers=offers)
    return replace(call.state, min_blocks=blocks)


RULE = Rule("launch_bounds", "launch_bounds(BLOCKS)", _apply)
