"""The numbers that machines compute with, and the sizes for which emitted code is made: stated once, imported everywhere.

A launcher checks sizes against these before it starts anything, in arithmetic that cannot overflow.
"""

from __future__ import annotations

from enum import Enum


class Width(Enum):
    """How many bits an integer has beside its sign: `int`, `long long`, and 128 bits for what fits neither."""

    INT = 31
    LONG = 63
    WIDE = 127

    @property
    def most(self) -> int:
        """The greatest integer of the width."""
        return (1 << self.value) - 1

    def holds(self, ends: tuple[int | None, int | None]) -> bool:
        """Whether every integer between the two ends, both inclusive, has this width; `None` is no end."""
        lo, hi = ends
        return lo is not None and hi is not None and -(1 << self.value) <= lo and hi < 1 << self.value


WIDTHS = tuple(Width)
"""Narrowest first."""

LARGEST_INT = 2**31 - 1
"""The greatest `int`: a coordinate of a tile, a trip of a host loop, a number of blocks along an axis are at most this."""

LARGEST_SIZE = 2**31 - 2**16
"""Sizes are checked to be at most this before a launch, so that a padded index or a loop's last step is still an `int`."""

LAST_BLOCK = LARGEST_INT - 1
"""The greatest index of a block along an axis of a grid; launchers refuse more."""

MOST_BYTES = 2**62
"""The bytes that an array may span, an extent of 0 counted as 1; launchers refuse more, and no machine has more."""

MOST_INDEX = 2**62
"""What index arithmetic that would exceed 64 bits is bounded to, where a bound on sizes is asked for."""
