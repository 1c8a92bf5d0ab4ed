"""`mma(i, j, k)`: the innermost nest of a product, of the shape of an instruction, done by lanes together.

Before: par 64 |i| { par 32 |j| { seq 32 |k| reduce(acc) { acc[i, j] += f32(As[i, k]) * f32(Bs[k, j]) } } }
After:  seq 2 |k_o| { par 4 |i_o| { par 4 |j_o| {
            par 16 |i_i| #mma(mma_m16n8k16_f32_bf16) { par 8 |j_i| { seq 16 |k_i| reduce(acc) { acc[…] += … } } } } } }

Loops that are longer than the instruction's are split by its extents. Of the instructions that the target has, those of the text
before the shipped ones, the first is taken that means what the nest does (`texpr.schedule.joint.match`), the largest first; or that
of a name. At the end of the schedule the tile that is summed up is put into registers of the lanes that the instruction's
fragments name, and so is all that goes through it (`texpr.schedule.joint.convert`). Loops around that are bound to `warp`, or to
`block.y` and `block.z`, are warps.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from texpr.affine.expr import expr
from texpr.ir import program as ir
from texpr.ir.instr import Instr
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Joint
from texpr.schedule.call import Call, Rule
from texpr.schedule.directives.reorder import RULE as REORDER
from texpr.schedule.directives.split import halves
from texpr.schedule.joint.match import match
from texpr.schedule.joint.records import named, usable
from texpr.schedule.rewrite.fills import derived
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, loops
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace


def _apply(call: Call) -> State:
    call.expect(3, 4)
    call.require_memory("lanes", None)
    for argument in call.plain[:3]:
        free_loop(call, argument)
    tried = list(_instructions(call))
    for instr in tried:
        for shape in _shapes(instr):
            found = _shaped(call, instr, shape)
            if found is not None:
                return found
    raise _unlike(call, tried)


def _instructions(call: Call) -> tuple[Instr, ...]:
    """Those to try, in order."""
    if len(call.plain) < 4:
        return usable(call.state.function, call.state.target)
    name, known = call.word(call.plain[3], what="the name of an instruction"), named(call.state.function)
    if name not in known:
        raise call.refuse(
            "E0903", f"there is no instruction `{name}`", at=call.plain[3], help=f"those of lanes are {', '.join(known)}"
        )
    if known[name].template(call.state.target) is None:
        raise call.refuse("E0908", f"{call.state.target.name} has no instruction `{name}`", at=call.plain[3])
    return (known[name],)


def _shapes(instr: Instr) -> Iterator[tuple[int, ...]]:
    """The extents that the three loops may have."""
    yield from dict.fromkeys(permutations([turn.extent for turn in instr.loops]) if len(instr.loops) == 3 else ())


def _shaped(call: Call, instr: Instr, shape: tuple[int, ...]) -> State | None:
    """The state in which the nest of these loops is one instruction, if it is what that means."""
    named_loops = [call.loop(argument) for argument in call.plain[:3]]
    if not all(
        loop.extent.is_constant and loop.extent.constant % extent == 0 for loop, extent in zip(named_loops, shape, strict=True)
    ):
        return None
    (innermost,) = [loop for loop in named_loops if not any(other in loops(loop.body) for other in named_loops)] or [None]
    bind = None if innermost is None else next((s for s in ir.walk(innermost.body)), None)
    if not isinstance(bind, ir.Bind):
        return None
    trial = [replace(loop, extent=expr(extent)) for loop, extent in zip(named_loops, shape, strict=True)]
    if match(instr, trial, bind) is None:
        return None
    return _nested(call, instr, shape)


def _nested(call: Call, instr: Instr, shape: tuple[int, ...]) -> State:
    """The loops split by `shape`, the parts inside of all others, and marked."""
    state, outer, inner = call.state, list[str](), list[str]()
    names = call.directive.results or ("", "", "")
    for argument, extent, result in zip(call.plain[:3], shape, names, strict=True):
        loop = replace(call, state=state).loop(argument)
        if loop.extent.constant == extent:
            inner.append(exactly(loop.sym.name, state.function.body))
            continue
        first, second = result or state.fresh(f"{loop.sym.base}_o"), state.fresh(f"{loop.sym.base}_i")
        made = replace(call.directive, args=(argument,), results=(first, second))
        state, below = halves(replace(call, directive=made, state=state), loop, expr(extent))
        outer.append(first)
        inner.append(below.sym.name)
    order = (*outer[2:], *outer[:2], *inner) if len(outer) == 3 else (*outer, *inner)
    args = tuple(ir.Argument(name, span=call.directive.span) for name in order)
    state = REORDER.apply(Call(REORDER, replace(call.directive, args=args, results=()), state))
    top = next(loop for loop in loops(state.function.body) if loop.sym.name == inner[0])
    state = derived(state, top)
    top = next(loop for loop in loops(state.function.body) if loop.sym.name == inner[0])
    return state.changed(top, lambda copy: marked(copy, Joint(instr.name, span=call.directive.span)))


def _unlike(call: Call, tried: list[Instr]) -> TexprError:
    names = ", ".join(f"`{argument.value}`" for argument in call.plain[:3])
    reason = f"the loops over {names} are not what an instruction of {call.state.target.name} means"
    if len(call.plain) > 3:
        reason = f"the loops over {names} are not what `{tried[0].name}` means"
    help = "a product of the instruction's types, in a `reduce`, in loops whose extents its own divide, is one"
    return call.refuse("E0919", reason, help=help)


RULE = Rule("mma", "mma(LOOP, LOOP, LOOP) or mma(LOOP, LOOP, LOOP, INSTRUCTION) -> (NAME, NAME, NAME)", _apply)
