"""Swizzles of shared memory: a permutation of 16-byte chunks that is a function of the *address* alone:
chunks are permuted within a line, by the number of the line.

PTX ISA, "Tensors", "Swizzling Modes". The patterns with other atoms than 16 bytes are not modelled.
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
        """Bytes within which chunks move; the rows of a box are at most as long, and each takes as much room."""
        return self.value

    @property
    def period(self) -> int:
        """Bytes after which the pattern repeats: 256, 512, 1024; 128, the least alignment of shared memory, for none."""
        return LINE * max(1, self.value // CHUNK)

    def __call__(self, address: Place) -> Place:
        """Where the byte at a linear address is kept: the chunk's number within its span, XOR that of the line."""
        return address if self is Swizzle.NONE else address ^ (address // LINE % (self.value // CHUNK) * CHUNK)

    def pitch(self, row: int) -> int:
        """Bytes from one row of a box to the next, where a row is `row` bytes long.

        CUDA C++ Programming Guide, "TMA Swizzle": memory must "accommodate the full swizzle width" where that is more.
        """
        return max(row, self.value)
