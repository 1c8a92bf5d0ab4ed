"""Limits of machine integers, and of the sizes that emitted code supports: defined once.

A launcher checks sizes against these before a launch, in arithmetic that cannot overflow.
"""

from __future__ import annotations

from enum import Enum


class Width(Enum):
    """The value bits of an integer: `int`, `long long`, and 128 bits for what fits neither."""

    INT = 31
    LONG = 63
    WIDE = 127

    @property
    def most(self) -> int:
        """The greatest integer of the width."""
        return (1 << self.value) - 1

    def holds(self, ends: tuple[int | None, int | None]) -> bool:
        """Whether every integer between the two ends, both inclusive, fits; `None`, no bound, does not."""
        lo, hi = ends
        return lo is not None and hi is not None and -(1 << self.value) <= lo and hi < 1 << self.value


WIDTHS = tuple(Width)
"""Narrowest first."""

LARGEST_INT = 2**31 - 1
"""The greatest `int`, an upper bound of coordinates of a tile, trip counts of host loops, and blocks along an axis."""

LARGEST_SIZE = 2**31 - 2**16
"""The greatest size, checked before a launch, chosen such that a padded index or a loop's last step is still an `int`."""

LAST_BLOCK = LARGEST_INT - 1
"""The greatest index of a block along an axis of a grid; launchers refuse more."""

MOST_BYTES = 2**62
"""The most bytes that an array may span, with extents of 0 counted as 1; launchers refuse more."""

MOST_INDEX = 2**62
"""The bound for index arithmetic that would otherwise exceed 64 bits, where a checked bound on sizes is required."""
