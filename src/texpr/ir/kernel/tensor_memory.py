"""Which columns of tensor memory a kernel takes, and which array has which of them."""

from __future__ import annotations

from collections.abc import Mapping

from texpr.ir.instr.registers import columns_of
from texpr.ir.kernel import Kernel, Operation, walk
from texpr.ir.operation import Lasts
from texpr.ir.value import Buffer
from texpr.isa.levels import Space


def taken(kernel: Kernel) -> int:
    """The columns that a kernel takes; 0 where it takes none."""
    every = (stmt.completion(kernel.map_of) for stmt in walk(kernel.body) if isinstance(stmt, Operation))
    return max((each.count for each in every if isinstance(each, Lasts)), default=0)


def places(kernel: Kernel) -> Mapping[Buffer, range]:
    """The columns of each array, from the first on that is taken, in their order."""
    arrays = sorted((a for a in kernel.arrays if a.space is Space.TENSOR), key=lambda array: array.at or 0)
    return {a.buffer: range(a.at or 0, (a.at or 0) + columns_of(a.buffer.dtype, a.buffer.shape[0].constant)) for a in arrays}
