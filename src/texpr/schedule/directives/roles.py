"""`roles(ko, copy=1, compute=2)`: one warp copies what a pipelined loop uses, two warpgroups do all else; with `registers=(24,
240)` threads that copy keep 24 registers each, and give up the others to those that compute.

Before: seq E + 3 |ko| { if ko < E { copy As[ko % 4] }  if ko >= 3 { … As[(ko - 3) % 4, …] … } }
After:  the same, marked; in the kernel warp 8 copies, and warps 0 to 7 compute, each in a loop of its own

Between them are barriers in shared memory for full and for empty slots, which follow from the dependences
(docs/theory/channels.md). No order changes, so nothing has to be proved of the program; the kernel is proved as all are.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.kernel.roles import LEAST, MOST
from texpr.ir.program.marked import mark, marked
from texpr.ir.program.marks import Pipeline, Roles
from texpr.isa.cuda import REGISTERS_BY, SETMAXNREG, TMA, WARPGROUP, registers_left
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import left_out
from texpr.schedule.state import State
from texpr.schedule.tree import replaced

WARPS = 4
"""The most warps that copy: one thread of them does."""


def _apply(call: Call) -> State:
    call.expect(1, keys=("copy", "compute", "registers"))
    call.no_results()
    found = call.key("copy"), call.key("compute")
    warps, groups = (1 if each is None else call.number(each) for each in found)
    if warps > WARPS:
        raise call.wrong(f"gives copies at most {WARPS} warps, not {warps}", found[0])
    loop, target = call.loop(call.plain[0]), call.state.target
    if TMA not in target.features:
        reason = f"{target.name} has no engine that copies for other warps"
        raise call.refuse("E0920", reason, offers=left_out(call.directive.span))
    if not mark(loop, Pipeline):
        reason = f"`{loop.sym.base}` copies nothing ahead, which warps of their own could do"
        offers = (*call.before("copy ahead first: %", f"pipeline({loop.sym.base}, stages=4)"), *left_out(call.directive.span))
        raise call.refuse("E0920", reason, at=call.plain[0], offers=offers)
    registers = _registers(call, warps, groups)
    made = marked(loop, Roles(warps, groups * (WARPGROUP // target.warp), registers, span=call.directive.span))
    return call.state.with_body(replaced(call.state.function.body, loop, lambda _: (made,)))


def _registers(call: Call, warps: int, groups: int) -> tuple[int, int]:
    """The registers of a thread that copies, and of one that computes; zeros where nothing is said."""
    asked, target = call.key("registers"), call.state.target
    if asked is None:
        return 0, 0
    parts = asked.value.args if isinstance(asked.value, ir.Group) else (asked,)
    if len(parts) != 2:
        raise call.wrong("takes two numbers of registers, `(24, 240)`: of a thread that copies, of one that computes", asked)
    copy, compute = (call.number(part) for part in parts)
    if SETMAXNREG not in target.features:
        raise call.refuse("E0920", f"warps of {target.name} keep the registers that they start with", at=asked)
    if any(not LEAST <= each <= MOST or each % REGISTERS_BY for each in (copy, compute)):
        raise call.wrong(f"takes multiples of {REGISTERS_BY} from {LEAST} to {MOST}, not {copy} and {compute}", asked)
    if warps * target.warp % WARPGROUP:
        whole = WARPGROUP // target.warp
        told = f"shares registers among whole warpgroups, so {whole} warps have to copy, not {warps}: `copy={whole}`"
        raise call.wrong(told, asked)
    most = registers_left(warps * target.warp, copy, groups * WARPGROUP)
    if compute > most:
        told = f"leaves at most {most} registers to each thread that computes, not {compute}: `({copy}, {most})`"
        raise call.wrong(told, asked)
    return copy, compute


RULE = Rule("roles", "roles(LOOP, copy=WARPS, compute=WARPGROUPS, registers=(N, N))", _apply)
