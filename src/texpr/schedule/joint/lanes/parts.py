"""A tile that lanes hold, part by part: what one iteration of a loop around finds in registers.

    par 2 |h| { new S … par 64 |i| par 128 |j| { S[i, j] = acc[i, 128 * h + j] } … S leaves … }

Where statements beside such a loop over the tile are in the loop around as well, as copies of a part to somewhere else are, it
stays a loop, and each iteration goes over the lanes, and over the registers whose digit it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import ZERO, Expr, expr
from texpr.ir import program as ir
from texpr.ir.instr.fragment import Fragment, Misfit
from texpr.schedule.joint.lanes.layout import steps_of
from texpr.support.record import Record, replace


class Part(Record):
    """What is held in an iteration of the loops around: a fragment of that part, whose registers begin at `first`, and the
    subscripts of the tile in it."""

    held: Fragment
    first: Expr
    index: tuple[Expr, ...]


def part_of(held: Fragment, index: Sequence[Expr], around: Sequence[ir.Loop]) -> Part:
    """The part of a tile that an iteration of loops `around` goes through, which are the outermost digits of a subscript.

    Raises Misfit where that is no digit of registers.
    """
    found = Part(held, ZERO, tuple(index))
    for loop in around:
        found = _inside(found, loop)
    return found


def _inside(whole: Part, loop: ir.Loop) -> Part:
    steps = steps_of(tuple(e - e.substitute({loop.sym: ZERO}) for e in whole.index), frozenset({loop.sym}))
    dim, step = steps[loop.sym]
    size, held = loop.extent.constant, whole.held
    if step * size != held.shape[dim]:
        raise Misfit(f"`{loop.sym.base}` does not cut a tile into parts along its dimension {dim}")
    digit = next((d for d in held.digits if not d.of_lane and d.dim == dim and d.step * d.size == step * size), None)
    if digit is None or digit.size % size:
        raise Misfit(f"what an iteration of `{loop.sym.base}` goes through is not in registers of its own")
    inner = replace(digit, size=digit.size // size)
    digits = tuple(inner if d is digit else d for d in held.digits if d is not digit or inner.size > 1)
    shape = tuple(step if at == dim else extent for at, extent in enumerate(held.shape))
    part = replace(held, shape=shape, digits=digits, registers=held.registers // size)
    first = whole.first + expr(loop.sym) * (digit.weight * inner.size)
    return Part(part, first, tuple(e.substitute({loop.sym: ZERO}) for e in whole.index))
