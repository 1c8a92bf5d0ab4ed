"""Whether a nest of loops is what an instruction means.

    par 16 |ii| { par 8 |jj| { seq 16 |kk| reduce(acc) { acc[ii, jj] += f32(As[ii, kk]) * f32(Bs[kk, jj]) } } }

Loops of the nest stand for loops of the meaning, in any order, with the same extents. The values are built alike, where what
the meaning reads of an operand stands for an element that the nest reads. That element may depend on those loops only that say
which element of the operand is meant, so each of these is one number; how the array around it is laid out is no matter.

An operand that lanes hold in registers may be *computed* of elements that the nest reads, of the same loops and no others:

    acc[ii, jj] += f32(bf16(f32(bf16(Ws[ii, kk])) * f32(scale[ii]))) * f32(Bs[kk, jj])

Each lane computes what it holds. Then the factors may be those of the meaning the other way round: a product is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from texpr.affine.expr import ONE, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.instr import Give, Instr, Operand
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block
from texpr.ir.program.updates import EXACTLY_ONCE_FREE
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Value, walk
from texpr.ir.value.structure import same
from texpr.support.record import Record, replace


class Match(Record):
    """A nest as an instruction. `loops`: the nest's loop for each of the meaning; `reads`: what is read for each operand.

    `computed`: for an operand that is computed of what the nest reads, its value; `reads` has a name for it. `swapped`: whether
    the factors of the text are those of the meaning the other way round.
    """

    instr: Instr
    bind: ir.Bind
    loops: Mapping[Sym, Sym]
    reads: Mapping[Buffer, Load]
    computed: Mapping[Buffer, Value]
    swapped: bool = False

    @property
    def give(self) -> Give:
        """The statement of the meaning."""
        return self.instr.gives[0]

    @property
    def result(self) -> Operand:
        """The operand that is written."""
        return self.instr.by_memory[self.give.target.buffer]

    def along(self, operand: Operand) -> tuple[Sym, ...]:
        """The nest's loops along the dimensions of an operand."""
        target = self.give.target
        load = target if operand is self.result else next(load for load in _loads(self.give.value, operand.memory))
        return tuple(self.loops[sym] for e in load.index if (sym := e.as_sym) is not None)


def cut(instr: Instr, nest: Sequence[ir.Loop], bind: ir.Bind) -> Iterator[tuple[tuple[int, ...], Match]]:
    """The extents to which loops around `bind` may be cut, each way, so that the nest inside is `instr`."""
    extents = [turn.extent for turn in instr.loops]
    for shape in dict.fromkeys(permutations(extents)) if len(extents) == len(nest) else ():
        inner = [replace(loop, extent=expr(at)) for loop, at in zip(nest, shape, strict=True)]
        found = match(instr, inner, bind) or match(instr, inner, _inside(nest, shape, bind))
        if found is not None:
            yield shape, found


def _inside(nest: Sequence[ir.Loop], shape: Sequence[int], bind: ir.Bind) -> ir.Bind:
    """The statement in loops that are cut to these extents, which the loops around these know: k / 32 is one number there."""
    ranges = {loop.sym: (0, at - 1) for loop, at in zip(nest, shape, strict=True)}
    cut = {loop.sym: expr(Sym(f"{loop.sym.name}_cut")) * at + loop.sym for loop, at in zip(nest, shape, strict=True)}
    (made,) = substitute_block((bind,), cut)
    simple = Simplifier(Known(ranges))
    (made,) = Rewriter(value=lambda old: replace_loads(old, lambda load: _simplified(load, simple))).block((made,))
    assert isinstance(made, ir.Bind)
    return made


def _simplified(load: Load, simple: Simplifier) -> Load:
    return replace(load, index=tuple(map(simple, load.index)))


def match(instr: Instr, nest: Sequence[ir.Loop], bind: ir.Bind) -> Match | None:
    """The nest of perfectly nested loops around `bind`, as `instr`; None where it is not what that means."""
    turns = instr.loops
    held = (o for o in instr.operands if not o.columns or o.is_written)  # of what is read in tensor memory copies are alike
    if len(instr.gives) != 1 or len(turns) != len(nest) or any(o.is_address or o.fragment.copies for o in held):
        return None
    give = instr.gives[0]
    for said, swapped in ((bind, False), *((each, True) for each in _swapped(bind))):
        for order in permutations(nest):
            if all(loop.extent.is_constant and loop.extent.constant == t.extent for loop, t in zip(order, turns, strict=True)):
                loops = {turn.sym: loop.sym for turn, loop in zip(turns, order, strict=True)}
                for values in _alike(give, said):
                    found = Match(instr, bind, loops, *_operands(values), swapped)
                    if _fits(found, {loop.sym: loop for loop in nest}):
                        return found
    return None


def _swapped(bind: ir.Bind) -> Iterator[ir.Bind]:
    """A statement whose factors are the other way round, if one of them is computed."""
    match bind.values[0]:
        case Op("mul", (one, other)) as product if _is_computed(_plain(one)) or _is_computed(_plain(other)):
            yield replace(bind, values=(replace(product, args=(other, one)),))
        case _:
            pass


def _plain(factor: Value) -> Value:
    """A factor without the conversion to the type of the sum."""
    return factor.arg if isinstance(factor, Cast) else factor


def _is_computed(value: Value) -> bool:
    """Whether a value is not an element, but computed of some, which no data say the numbers of."""
    loads = [node for node in walk(value) if isinstance(node, Load)]
    return not isinstance(value, Load) and bool(loads) and not any(load.data for load in loads)


def _operands(values: Mapping[Buffer, Value]) -> tuple[Mapping[Buffer, Load], Mapping[Buffer, Value]]:
    """What is read for each operand; and what is computed, for which that is a name, of all that it depends on."""
    computed = {memory: value for memory, value in values.items() if not isinstance(value, Load)}
    reads = {memory: value for memory, value in values.items() if isinstance(value, Load)}
    for memory, value in computed.items():
        syms = tuple(expr(sym) for sym in sorted(_syms(value), key=str))
        reads[memory] = Load(Buffer(memory.name, memory.dtype, syms, "local"), syms)
    return reads, computed


def _alike(give: Give, bind: ir.Bind) -> Iterator[Mapping[Buffer, Value]]:
    """What a statement has for each operand, where it is built like one of a meaning, its loops aside."""
    if bind.update == give.update and len(bind.targets) == 1 and bind.targets[0].dtype == give.target.dtype:
        yield from _values(give.value, bind.values[0], {})


def _values(meant: Value, given: Value, known: Mapping[Buffer, Value]) -> Iterator[Mapping[Buffer, Value]]:
    match meant, given:
        case Load(), _ if meant.dtype == given.dtype and (isinstance(given, Load) or _is_computed(given)):
            before = known.get(meant.buffer)
            if before is None or same(before, given):
                yield {**known, meant.buffer: given}
        case Cast(), Cast() if meant.dtype == given.dtype:
            yield from _values(meant.arg, given.arg, known)
        case Literal(), Literal() if meant.value == given.value and meant.dtype == given.dtype:
            yield known
        case Op(), Op() if meant.name == given.name and meant.dtype == given.dtype and len(meant.args) == len(given.args):
            yield from _arguments(meant.args, given.args, known)
        case _:
            pass


def _arguments(
    meant: Sequence[Value], given: Sequence[Value], known: Mapping[Buffer, Value]
) -> Iterator[Mapping[Buffer, Value]]:
    if not meant:
        yield known
        return
    for found in _values(meant[0], given[0], known):
        yield from _arguments(meant[1:], given[1:], found)


def _fits(found: Match, nest: Mapping[Sym, ir.Loop]) -> bool:
    """Whether each element that is read, or written, is one element of its operand, and sums may come in any order."""
    target, used = found.bind.targets[0], {sym for load in (found.give.target,) for e in load.index for sym in e.syms()}
    moved = {sym for sym in _syms(target) if sym in nest}
    once = {sym for sym, loop in nest.items() if loop.extent is ONE}  # there it is always 0, and subscripts are without it
    if target.data or not _is_plain(found.give.target) or moved | once != {found.loops[sym] for sym in used} | once:
        return False
    summed = [loop for sym, loop in nest.items() if sym not in _syms(target) and sym not in once]
    if found.bind.update not in EXACTLY_ONCE_FREE and any(target.buffer not in loop.reduce for loop in summed):
        return False
    if found.instr.sums and any(loop.ieee for loop in summed):
        return False
    for memory, load in found.reads.items():
        own = {found.loops[sym] for e in _first(found.give.value, memory).index for sym in e.syms()}
        if load.data or not _is_plain(_first(found.give.value, memory)) or not _syms(load) & nest.keys() <= own:
            return False
    if any(found.instr.by_memory[each].is_described or found.instr.by_memory[each].columns for each in found.computed):
        return False
    return len({load.index for load in _loads(found.give.value, None)}) == len(found.reads)


def _is_plain(load: Load) -> bool:
    """Whether the subscripts of an operand are loops, each another one."""
    syms = [e.as_sym for e in load.index]
    return None not in syms and len(set(syms)) == len(syms)


def _syms(value: Value) -> frozenset[Sym]:
    """What elements, and numbers, depend on."""
    inside = (e for node in walk(value) for e in _exprs(node))
    return frozenset(sym for e in inside for sym in e.syms())


def _exprs(node: Value) -> tuple[Expr, ...]:
    match node:
        case Load():
            return node.index
        case Index():
            return (node.expr,)
        case _:
            return ()


def _first(value: Value, memory: Buffer) -> Load:
    return next(_loads(value, memory))


def _loads(value: Value, memory: Buffer | None) -> Iterator[Load]:
    match value:
        case Load() if memory is None or value.buffer is memory:
            yield value
        case Cast():
            yield from _loads(value.arg, memory)
        case Op():
            for arg in value.args:
                yield from _loads(arg, memory)
        case _:
            pass
