"""`mma(i, j, k)`: the innermost nest of a product, of the shape of an instruction, done by lanes together.

Before: par 64 |i| { par 32 |j| { seq 32 |k| reduce(acc) { acc[i, j] += f32(As[i, k]) * f32(Bs[k, j]) } } }
After:  seq 2 |k_o| { par 4 |i_o| { par 4 |j_o| {
            par 16 |i_i| #mma(mma_m16n8k16_f32_bf16) { par 8 |j_i| { seq 16 |k_i| reduce(acc) { acc[…] += … } } } } } }

Loops that are longer than the instruction's are split by its extents. Of the instructions that the target has, the first is
taken that means what the nest does (`texpr.schedule.joint.match`), those that do most first; or that of a name. Open copies
fill with zero. When the schedule ends the tile that is summed up is put into registers of the lanes that the instruction's
fragments name, and so is all that goes through it (`texpr.schedule.joint.convert`). Loops around that are bound to `warp`, or
to `block.y` and `block.z`, are warps. Holes compute: those along the sum are proved to change nothing, and those of results to
be read by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from texpr.affine.expr import expr
from texpr.ir import program as ir
from texpr.ir.instr import Instr
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import IEEE, Joint
from texpr.ir.program.rewrite import substitute_block
from texpr.schedule.call import Call, Rule
from texpr.schedule.directives.reorder import RULE as REORDER
from texpr.schedule.directives.split import halves
from texpr.schedule.edits import head, words
from texpr.schedule.holes.fills import derived
from texpr.schedule.joint.match import cut
from texpr.schedule.joint.records import by_name, listed, usable
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.rewrite.selects import unselected
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, loops, path_to, replaced
from texpr.support.diagnostic import Note, TexprError
from texpr.support.record import replace

LOOPS = 3


def _apply(call: Call) -> State:
    call.expect(LOOPS, LOOPS + 1)
    if len(call.directive.results) not in (0, LOOPS):
        raise call.wrong(f"gives {LOOPS} names, not {len(call.directive.results)}")
    if not call.state.target.has_warps and not usable(call.state.function, call.state.target):
        call.require_memory("lanes", None)
    nest = [free_loop(call, argument) for argument in call.plain[:LOOPS]]
    call = replace(call, state=unselected(call.state, max(nest, key=lambda loop: len(loops(loop.body)))))
    nest = [free_loop(call, argument) for argument in call.plain[:LOOPS]]
    bind = _statement(call.state, nest)
    tried = _instructions(call)
    for instr in tried:
        for shape, _ in cut(instr, nest, bind) if bind is not None else ():
            if _are_even(nest, shape):
                state = _nested(call, instr, shape)
                materialise(state)  # which proves that holes may compute, or refuses
                return state
    raise _otherwise(call, tried, nest, bind) or _unlike(call, tried)


def _instructions(call: Call) -> tuple[Instr, ...]:
    """Those to try, in order."""
    if len(call.plain) == LOOPS:
        return usable(call.state.function, call.state.target)
    name = call.word(call.plain[LOOPS], what="the name of an instruction")
    found = by_name(call.state.function, name)
    if found is None:
        help = f"those that lanes do together are {', '.join(listed(call.state.function))}"
        raise call.refuse("E0903", f"there is no instruction `{name}`", at=call.plain[LOOPS], help=help)
    if found.template(call.state.target) is None:
        first = ", ".join(first for first, _ in found.asm) or "none"
        help = f"there are templates of it for {first}"
        raise call.refuse("E0908", f"{call.state.target.name} has no instruction `{name}`", at=call.plain[LOOPS], help=help)
    return (found,)


def _statement(state: State, nest: Sequence[ir.Loop]) -> ir.Bind | None:
    """The one statement inside of all the loops, if there are no others, its subscripts over these."""
    innermost = next((loop for loop in nest if not any(other in loops(loop.body) for other in nest)), None)
    bind = innermost.body[0] if innermost is not None and len(innermost.body) == 1 else None
    if not isinstance(bind, ir.Bind):
        return None
    around = [s for s in path_to(state.function.body, bind) or () if isinstance(s, ir.Par | ir.Seq)]
    graph = state.graph(around)
    names = {domain.sym: expr(loop.sym) for domain, loop in zip(graph.leaves, around, strict=True)}
    (made,) = substitute_block((bind,), graph.indices(names))
    return made if isinstance(made, ir.Bind) else None


def _are_even(nest: Sequence[ir.Loop], shape: Sequence[int]) -> bool:
    """Whether the loops are multiples of the extents that an instruction has for them."""
    return all(loop.extent.is_constant and loop.extent.constant % at == 0 for loop, at in zip(nest, shape, strict=True))


def _nested(call: Call, instr: Instr, shape: tuple[int, ...]) -> State:
    """The loops split by `shape`, the parts inside of all others, and marked."""
    state, outer, inner = call.state, list[str](), list[str]()
    names = call.directive.results or ("",) * LOOPS
    for argument, extent, result in zip(call.plain[:LOOPS], shape, names, strict=True):
        here = replace(call, state=state)
        loop = here.loop(argument)
        if loop.extent.constant == extent:
            inner.append(exactly(loop.sym.name, state.function.body))
            continue
        both = result or state.fresh(f"{loop.sym.base}_o"), state.fresh(f"{loop.sym.base}_i")
        made = replace(call.directive, args=(argument,), results=both)
        state, _ = halves(replace(here, directive=made), loop, expr(extent))
        outer.append(both[0])
        inner.append(both[1])
    order = (*outer[2:], *outer[:2], *inner)
    args = tuple(ir.Argument(name, span=call.directive.span) for name in order)
    state = REORDER.apply(Call(REORDER, replace(call.directive, args=args, results=()), state))
    state = derived(state, _called(state, inner[0]))
    top = _called(state, inner[0])
    made = marked(top, Joint(instr=instr.name, span=call.directive.span))
    return state.with_body(replaced(state.function.body, top, lambda _: (made,)))


def _called(state: State, name: str) -> ir.Loop:
    very = name.removesuffix("'0")
    return next(loop for loop in loops(state.function.body) if loop.sym.name == very)


def _otherwise(call: Call, tried: Sequence[Instr], nest: Sequence[ir.Loop], bind: ir.Bind | None) -> TexprError | None:
    """The refusal of a sum that is to be rounded as IEEE 754 says, where that alone is why no instruction does it."""
    plain = [replace(loop, ieee=False) for loop in nest]
    found = (instr for instr in tried for shape, _ in (cut(instr, plain, bind) if bind else ()) if _are_even(plain, shape))
    instr = next(found, None)
    if instr is None:
        return None
    kept = next(loop for loop in nest if loop.ieee)
    how = "in an arithmetic of its own" if instr.rounding is None else f"otherwise ({instr.rounding.text})"
    told = f"the sum over `{kept.sym.base}` is to be rounded as IEEE 754 says, and `{instr.name}` rounds {how}"
    place = head(kept)
    offers = words(place, f"leave `#{IEEE}` out", _unmarked(place.text)) if place is not None else ()
    help = "sums of `f64`, and of integers, are what tensor cores round, or do not, like every other unit"
    return call.refuse("E0921", told, Note("the loop is here", kept.span), help=help, offers=offers)


def _unmarked(text: str) -> str:
    """The head of a loop without the mark."""
    return re.sub(rf"#{IEEE}\b *", "", text)


def _unlike(call: Call, tried: Sequence[Instr]) -> TexprError:
    loops = ", ".join(f"`{argument.value}`" for argument in call.plain[:LOOPS])
    whose = f"`{tried[0].name}`" if len(call.plain) > LOOPS else f"an instruction of {call.state.target.name}"
    help = "a product of elements of its types, in a `reduce`, in loops whose extents those of the instruction divide, is one"
    return call.refuse("E0919", f"the loops over {loops} are not what {whose} means", help=help)


RULE = Rule("mma", "mma(LOOP, LOOP, LOOP) or mma(LOOP, LOOP, LOOP, INSTRUCTION) -> (NAME, NAME, NAME)", _apply)
