"""Swizzles of shared memory: a permutation of 16-byte chunks that depends on the *address* alone: the chunks of a line are
permuted by the number of the line.

PTX ISA, "Tensors", "Swizzling Modes". Patterns with atoms other than 16 bytes are not modelled.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from texpr.isa.engine import CHUNK, LINE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Place = TypeVar("Place", int, "npt.NDArray[np.int64]")


class Swizzle(Enum):
    """The span within which chunks are permuted, in bytes; 0 for none."""

    NONE = 0
    B32 = 32
    B64 = 64
    B128 = 128

    @property
    def span(self) -> int:
        """The span in bytes within which chunks are permuted; the rows of a box are at most as long, and each is padded to
        it."""
        return self.value

    @property
    def period(self) -> int:
        """The period of the pattern in bytes: 256, 512, 1024; 128, the least alignment of shared memory, for none."""
        return LINE * max(1, self.value // CHUNK)

    def __call__(self, address: Place) -> Place:
        """The swizzled address of a byte: the chunk's number within its span, XOR that of the line."""
        return address if self is Swizzle.NONE else address ^ (address // LINE % (self.value // CHUNK) * CHUNK)

    def pitch(self, row: int) -> int:
        """Bytes from one row of a box to the next, for rows of `row` bytes.

        CUDA C++ Programming Guide, "TMA Swizzle": memory must "accommodate the full swizzle width" where that is more.
        """
        return max(row, self.value)
