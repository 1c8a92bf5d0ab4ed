"""Matrices in shared memory that the tensor core of a warpgroup reads: which descriptor says where their elements lie.

    start instr wgmma … As[t % 4, i, xor(2 * kk + k / 8, i, 3), k % 8]      →      As[t % 4, 0, 2 * kk, 0] (128, 16, 1024)

Which one it is is looked for by numbers (`texpr.ir.instr.fitting`); that it is right is proved of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import ZERO
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.instr import Instr, Operand
from texpr.ir.instr.fitting import fitting
from texpr.ir.ops.collective import Held
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Load
from texpr.lowering.build.instructions import described_element
from texpr.support.diagnostic import limitation


def described(
    stmt: ir.Instruction, instr: Instr, operand: Operand, places: Mapping[Buffer, Place], known: Known
) -> tuple[Buffer, Held]:
    """The local that an operand is a part of, where it starts there, and its descriptor. A schedule may have staged it: the
    meaning alone says where. Raises Limitation E0541 where it is not shared, or lies otherwise."""
    load, names = described_element(stmt, instr, operand)
    place = places.get(load.buffer)
    if place is None or place.space is not k.Space.SHARED:
        told = f"`{operand.name}` of `{instr.name}` is read from shared memory, and `{load.buffer.name}` is not there"
        help = "what a schedule stages is there: `stage(…, in=shared, via=tma, swizzle=128B)`"
        raise limitation("E0541", load.span or stmt.span, told, help=help)
    there = Load(place.buffer, place.index(load.index), span=load.span)
    how = next(fitting(there, names, instr, operand, known), None)
    if how is None:
        told = f"no descriptor says where elements of `{operand.name}` of `{instr.name}` lie in `{there.buffer.name}`"
        help = "a swizzle of 128, 64 or 32 bytes, along rows of as many, lays out core matrices, and so do rows of 16 bytes"
        raise limitation("E0541", load.span or stmt.span, told, help=help)
    first = tuple(e.substitute(dict.fromkeys(names, ZERO)) for e in there.index)
    return load.buffer, Held(Load(there.buffer, first, span=load.span), operand.fragment.registers, operand.access, how)
