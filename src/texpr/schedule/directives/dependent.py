"""`dependent(off)`: each launch begins when the one before it has ended; `dependent(on)`: it may start while that one ends.

Of a plan with several kernels each but the first may start while the one before it ends, on a target that has such launches
(`texpr.lowering.host.dependent`): its threads wait before they touch what the other has to do with. Results are unchanged.
That is so by default; with `dependent(on)` a target without such launches is an error.
"""

from __future__ import annotations

from texpr.isa.cuda import DEPENDENT
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import left_out
from texpr.schedule.state import State
from texpr.support.record import replace


def _apply(call: Call) -> State:
    call.expect(1)
    call.no_results()
    target, on = call.state.target, call.word(call.plain[0], ("on", "off")) == "on"
    if on and DEPENDENT not in target.features:
        why = f"on {target.name} a launch begins when the one before it has ended"
        raise call.refuse("E0908", why, offers=left_out(call.directive.span))
    return replace(call.state, dependent=on)


RULE = Rule("dependent", "dependent(on|off)", _apply)
