"""Where a launch finds its arguments: bank 0 of constant memory, as nvcc and ptxas lay it out.

The offsets are those of the attribute `EIATTR_PARAM_CBANK` in cubins of nvcc 13.0, and of what reads `blockDim` and `gridDim`
in their machine code.
"""

from __future__ import annotations

from texpr.support.record import Record


class ConstantBank(Record):
    """Bytes from the start of bank 0 to the first argument, and to the extents of a block and of the grid, of 4 bytes each.
    `clustered`: to the word that says whether blocks were launched in clusters (PTX `%is_explicit_cluster`)."""

    arguments: int
    block: int
    grid: int
    clustered: int | None = None


_BANKS = {
    8: ConstantBank(0x160, 0x0, 0xC),
    9: ConstantBank(0x210, 0x0, 0xC, 0x140),
    10: ConstantBank(0x380, 0x360, 0x370, 0x36C),
}
_BANKS[12] = _BANKS[10]


def constant_bank(capability: tuple[int, int]) -> ConstantBank | None:
    """That of devices of a compute capability; None where it is not known."""
    return _BANKS.get(capability[0])
