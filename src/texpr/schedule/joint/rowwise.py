"""Marked nests as instructions that a core of a CPU does by itself: their operands are rows of memory, where they are.

    par 1 |i| #mma(vdpbf16ps) { par 16 |j| { seq 2 |k| reduce(acc) { acc[i, j] += f32(As[i, k]) * f32(Bs[q, j, k]) } } }

    instr vdpbf16ps(As[0, 0], Bs[q, 0, 0], acc[0, 0]) { … the same … }

The elements of an operand have to follow one another as its registers do: that is a question about addresses, for each element.
"""

from __future__ import annotations

from itertools import product

from texpr.affine.expr import ONE, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.instr import Operand
from texpr.ir.instr.fragment import Misfit
from texpr.ir.program.rewrite import substitute_load
from texpr.ir.value import Load
from texpr.schedule.joint.match import Match
from texpr.schedule.joint.nests import Nest


class Scattered(Misfit):
    """Elements of an operand that do not follow one another. `help`: what may be done."""

    def __init__(self, reason: str, help: str):
        self.help = help
        super().__init__(reason)


def in_rows(nest: Nest) -> ir.Stmt:
    """The nest as an instruction on rows of memory. Raises Scattered."""
    match, span = nest.match, nest.span
    operands = tuple(_first(nest, operand) for operand in match.instr.operands)
    body: tuple[ir.Stmt, ...] = (match.bind,)
    inner = {stmt.sym: stmt for stmt in ir.walk((nest.top,)) if isinstance(stmt, ir.Par | ir.Seq)}
    for turn in reversed(match.instr.loops):
        loop, free = inner[match.loops[turn.sym]], (match.bind.targets[0].buffer,) if turn.free else ()
        body = (ir.Seq(loop.sym, loop.extent, body, free, span=loop.span),)
    return ir.Instruction(match.instr.name, body, operands, span=span, instr=match.instr)


def _first(nest: Nest, operand: Operand) -> Load:
    """The first element of an operand, behind which the others are."""
    match, along = nest.match, nest.match.along(operand)
    load = match.bind.targets[0] if operand is match.result else match.reads[operand.memory]
    if operand.memory in match.computed:
        told = f"`{match.instr.name}` reads `{operand.name}` from memory, and it is computed here"
        raise Scattered(told, "`stage` computes it once, in a row")
    ranges = {loop.sym: (0, None if not loop.extent.is_constant else loop.extent.constant - 1) for loop in nest.loops}
    simple = Simplifier(Known(ranges))

    def at(point: tuple[int, ...]) -> Load:
        values = {sym: expr(0) for sym in match.loops.values()} | dict(zip(along, map(expr, point), strict=True))
        moved = substitute_load(load, values)
        return Load(moved.buffer, tuple(map(simple, moved.index)), moved.data, moved.span)

    first = at((0,) * len(along))
    if not _is_dense(load):
        raise Scattered(f"rows of `{load.buffer.name}` are apart in memory", "`stage(…, in=registers)` brings them together")
    for point in product(*(range(e.constant) for e in operand.memory.shape)):
        number = operand.fragment.register(tuple(map(expr, point)))
        if simple(at(point).offset - first.offset) is not number:
            raise _scattered(match, operand, load)
    return first


def _is_dense(load: Load) -> bool:
    """Whether inner extents say where rows are; the outermost one may be open."""
    strides = [ONE]
    for extent in reversed(load.buffer.shape[1:]):
        strides.insert(0, strides[0] * extent)
    return load.buffer.strides is None or tuple(load.buffer.strides) == tuple(strides)


def _scattered(match: Match, operand: Operand, load: Load) -> Scattered:
    shape = [e.constant for e in operand.memory.shape]
    told = f"elements of `{load.buffer.name}` do not follow one another as those of `{operand.name}` of `{match.instr.name}` do"
    if shape[0] == 1:
        return Scattered(told, f"`stage` brings them to rows along the sum, if `{load.buffer.name}` is turned")
    name, per = load.buffer.name, shape[0]
    help = (
        f"a copy of it has rows interleaved by {per}: behind `stage({name}, at=…, in=registers) -> p` say "
        f"`split(p.d0, {per}) -> (q, r)  reorder(p.q, p.d1, p.r)`"
    )
    return Scattered(told, help)
