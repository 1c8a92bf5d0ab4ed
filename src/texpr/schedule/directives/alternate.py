"""`alternate(turn, groups=2)`: two groups of warpgroups take the tiles of a block in turn.

Before: seq E |turn| { new C_s; seq K |k| #roles(1, 8) {…}  … C_s[…] … }
After:  seq E |turn| #alternate(2) { new C_s: [2, …]; seq K |k| #roles(1, 8) {…}  … C_s[turn % 2, …] … }

The group turn % 2 has the tile. So while one is in the loop `k`, and its products are on the tensor core, the other one stores
what it has; it comes next when that loop has ended. Tiles are iterations of a `par`, so any order is right, and this one is the
order that they had: nothing is to be proved of the program but that the memory of an iteration may be that of its group. What
the groups wait for is proved of the kernel (docs/theory/channels.md).
"""

from __future__ import annotations

from texpr.ir.program.marked import mark, marked
from texpr.ir.program.marks import Alternate, Persistent
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import left_out
from texpr.schedule.state import State
from texpr.schedule.tree import replaced

MOST = 4
"""The most groups: so many warpgroups, and the warps that copy, have registers for a tile."""


def _apply(call: Call) -> State:
    call.expect(1, keys=("groups",))
    call.no_results()
    asked = call.key("groups")
    groups = 2 if asked is None else call.number(asked, 2)
    if groups > MOST:
        raise call.wrong(f"lets at most {MOST} groups take turns, not {groups}", asked)
    loop = call.loop(call.plain[0])
    if not mark(loop, Persistent):
        reason = f"`{loop.sym.base}` is no loop over the tiles of a block, which groups of its warps could take in turn"
        raise call.refuse("E0920", reason, at=call.plain[0], offers=left_out(call.directive.span))
    if mark(loop, Alternate):
        reason = f"groups take the iterations of `{loop.sym.base}` in turn already"
        raise call.refuse("E0905", reason, at=call.plain[0], offers=left_out(call.directive.span))
    made = marked(loop, Alternate(groups, span=call.directive.span))
    return call.state.with_body(replaced(call.state.function.body, loop, lambda _: (made,)))


RULE = Rule("alternate", "alternate(TURN, groups=N)", _apply)
