"""Operands of inline assembler: CUDA's constraints for the registers of an operand, and the names in templates.

PTX ISA, "Operands": elements of 16 and of 8 bits are packed into registers of 32, the first one lowest (as in the figures of
fragments of mma); wider ones have a register each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from texpr.ir.instr import Instr, Operand
from texpr.ir.instr.fragment import Misfit
from texpr.ir.value.types import U32, DType, Kind
from texpr.support.record import Record

WORD = U32.bits
"""The bits of a register for packed elements."""

PLACE = re.compile(r"\{(\w+)\}")
"""The placeholders for registers of an operand in a template: `{a}`, all of them, or `{a1}`, one."""


MASK = "lanes"
"""The placeholder for the mask of existing lanes of the warp, unless an operand has this name."""


def columns_of(dtype: DType, slots: int) -> int:
    """The columns of tensor memory that so many elements of a lane take."""
    return slots * dtype.bits // WORD


class Packing(Record):
    """`count` machine registers of `constraint`, with `per` elements each."""

    constraint: str
    count: int
    per: int


def packing(dtype: DType, registers: int) -> Packing:
    """The machine registers for the elements of a lane. Raises Misfit."""
    if dtype.kind is Kind.BOOL:
        raise Misfit("no register holds a bool")
    if dtype.bits < WORD and registers * dtype.bits % WORD == 0:
        per = WORD // dtype.bits
        return Packing("r", registers // per, per)
    if dtype.bits == WORD // 2:
        return Packing("h", registers, 1)
    if dtype.bits < WORD:
        raise Misfit(f"a lane holds {registers} elements of {dtype.bits} bits, which fill no registers of {WORD}")
    wide = {"f32": "f", "f64": "d"}
    return Packing(wide.get(dtype.name, "r" if dtype.bits == WORD else "l"), registers, 1)


def packed(operand: Operand) -> Packing:
    """How an operand is given to assembler: its registers, or the register that has an address. Raises Misfit."""
    if operand.columns:
        return Packing("r", 1, 1)
    if operand.is_shared:
        return Packing("r" if operand.is_address else "l", 1, 1)
    return packing(operand.dtype, operand.fragment.registers)


class Place(Record):
    """The registers of an operand that a placeholder represents, all or one."""

    operand: Operand
    register: int | None


def places(instr: Instr, template: str) -> dict[str, Place]:
    """The placeholders in a template. Raises Misfit for an unknown one."""
    found: dict[str, Place] = {}
    by_name = {operand.name: operand for operand in instr.operands}
    for name in PLACE.findall(template):
        if name == MASK and MASK not in by_name:
            continue
        if name in by_name:
            found[name] = Place(by_name[name], None)
            continue
        base = name.rstrip("0123456789")
        operand, number = by_name.get(base), name[len(base) :]
        if operand is None or not number:
            raise Misfit(f"the template names `{{{name}}}`, which is no operand")
        count = packed(operand).count
        if int(number) >= count:
            raise Misfit(
                f"the template names `{{{name}}}`, and `{base}` has {count} register{'' if count == 1 else 's'} a lane"
            )
        found[name] = Place(operand, int(number))
    return found


def unnamed(instr: Instr, template: str) -> Iterator[str]:
    """The registers without a placeholder in a template, by the names that they would have."""
    named = places(instr, template).values()
    for operand in instr.operands:
        if any(place.operand is operand and place.register is None for place in named):
            continue
        own = {place.register for place in named if place.operand is operand}
        count = packed(operand).count
        missing = [f"{operand.name}{at}" for at in range(count) if at not in own]
        yield from [operand.name] if len(missing) == count else missing
