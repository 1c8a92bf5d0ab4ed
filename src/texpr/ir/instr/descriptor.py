"""Operands in shared memory as a descriptor says: where each element of one lies.

PTX ISA, "Asynchronous warpgroup level matrix instructions": "Matrix descriptor", "Shared memory matrix layout". A matrix is
made of core matrices: 8 rows of 16 bytes. Along the dimension in which these 16 bytes are consecutive they are *units*. Rows
are along the other one. With a swizzle of S bytes, S / 16 units lie side by side in lines of S bytes, a row in each, and units
move by the number of the line of 128 bytes, as the copies of tiles move them. Without one a core matrix is 128 bytes.

    units                from these to the next   rows       from 8 rows to the next 8
    S / 16 in a line     leading                  S bytes    stride                      swizzled
    1                    leading                  16 bytes   stride                      units along the sum
    1                    stride                   16 bytes   leading                     units along the product
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import Expr
from texpr.ir.instr import Instr, Operand, loads_of
from texpr.isa.engine import CHUNK, LINE
from texpr.support.record import Record

ROWS = 8
"""Rows of a core matrix."""

SWIZZLES = (LINE, LINE // 2, LINE // 4, 0)
"""Bytes within which units move."""


class Descriptor(Record):
    """The fields of a descriptor besides where the matrix starts, in bytes."""

    swizzle: int
    leading: int
    stride: int

    @property
    def period(self) -> int:
        """Bytes at a multiple of which an array begins whose units move as the descriptor says."""
        return ROWS * self.swizzle or LINE

    def __str__(self) -> str:
        return f"({self.swizzle}, {self.leading}, {self.stride})"


def along(operand: Operand) -> int:
    """The dimension along which elements are consecutive."""
    (found,) = (digit.dim for digit in operand.fragment.digits if not digit.of_lane)
    assert found is not None
    return found


def is_summed(instr: Instr, operand: Operand, dim: int) -> bool:
    """Whether what is summed up goes along a dimension of an operand; of a copy's, elements of a row do, as its descriptor is
    like those of such operands."""
    if instr.is_copy:
        return True
    kept = {sym for give in instr.gives for e in give.target.index for sym in e.syms()}
    used = [load for give in instr.gives for load in loads_of(give) if load.buffer is operand.memory]
    return not any(sym in kept for load in used for sym in load.index[dim].syms())


def offset(instr: Instr, operand: Operand, how: Descriptor, index: Sequence[Expr]) -> Expr:
    """How many bytes behind the start an element lies, before units move."""
    unit = along(operand)
    rows, column = index[1 - unit], index[unit]
    each = CHUNK // operand.dtype.bytes
    units, inside = column // each, column % each * operand.dtype.bytes
    if how.swizzle:
        wide = how.swizzle // CHUNK
        across = rows % ROWS * how.swizzle + rows // ROWS * how.stride
        return units % wide * CHUNK + units // wide * how.leading + inside + across
    near, far = (how.leading, how.stride) if is_summed(instr, operand, unit) else (how.stride, how.leading)
    return units * near + inside + rows % ROWS * CHUNK + rows // ROWS * far
