"""Swizzles: bits of a number XORed with other bits of it; and layouts whose values are swizzled."""

from __future__ import annotations

from collections.abc import Callable

from texpr.affine.expr import xor
from texpr.affine.facts import Known
from texpr.layout.algebra.inverse import right_inverse
from texpr.layout.algebra.recast import recast
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, IntoIntTree, minus, plus, tidy, times
from texpr.layout.layout import Layout
from texpr.layout.proof import NOTHING, Prover
from texpr.layout.slices import Slice, slice_of
from texpr.support.record import Record


class Swizzle(Record):
    """Bits `base` to `base + bits` of a number XORed with those `shift` places above.

    With a negative shift the upper bits are XORed with the lower ones. A swizzle is its own inverse, as the two groups of
    bits are disjoint: |shift| ≥ bits, otherwise LayoutError is raised.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0:
            raise LayoutError("swizzle", f"{self} has less than no bits")
        if abs(self.shift) < self.bits:
            raise LayoutError("swizzle", f"in {self} the bits that are crossed overlap", help="|shift| must be at least bits")

    @property
    def block(self) -> int:
        """The block size: each aligned block of so many numbers is permuted within itself."""
        return 1 << (self.base + self.bits + max(0, -self.shift)) if self.bits else 1

    def __call__(self, value: Int) -> Int:
        """The swizzled number."""
        source, target = self.base + max(0, self.shift), self.base + max(0, -self.shift)
        mask = value // (1 << source) % (1 << self.bits) * (1 << target)
        if isinstance(value, int) and isinstance(mask, int):
            return value ^ mask
        return tidy(xor(value, mask, target + self.bits))

    def recast(self, old_bits: int, new_bits: int) -> Swizzle:
        """The same permutation of memory, for elements of `new_bits`. Raises LayoutError where there is none."""
        if old_bits == new_bits or not self.bits:
            return self
        wide, narrow = max(old_bits, new_bits), min(old_bits, new_bits)
        ratio = wide // narrow
        by = ratio.bit_length() - 1 if old_bits > new_bits else 1 - ratio.bit_length()
        if wide % narrow or ratio & (ratio - 1) or self.base + by < 0:
            raise LayoutError("recast", f"{self} of {old_bits} bits crosses bits within elements of {new_bits}")
        return Swizzle(self.bits, self.base + by, self.shift)

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


class ComposedLayout(Record):
    """c ↦ swizzle(offset + layout(c)). The offset is applied before the swizzle, which is not additive."""

    swizzle: Swizzle
    offset: Int
    layout: Layout

    def __post_init__(self) -> None:
        if not self.layout.is_integral:
            raise LayoutError("swizzle", f"{self.layout} gives coordinates, and a swizzle takes numbers")

    @property
    def size(self) -> Int:
        """How many coordinates there are."""
        return self.layout.size

    def __call__(self, coord: IntoIntTree) -> Int:
        """The value at a coordinate in any form."""
        return self.swizzle(plus(self.offset, self.layout.offset(coord)))

    def on_coordinates(self, operation: Callable[[Layout], Layout]) -> ComposedLayout:
        """An operation on the coordinates (coalesce, composition, a divide, modes rearranged), with the swizzle unchanged."""
        return ComposedLayout(self.swizzle, self.offset, operation(self.layout))

    def slice(self, coord: Slice) -> ComposedLayout:
        """The open part; the fixed part is added to the offset."""
        part, base = slice_of(self.layout, coord)
        assert not isinstance(base, tuple)
        return ComposedLayout(self.swizzle, plus(self.offset, base), part)

    def coordinate(self, value: Int, known: Known = NOTHING) -> Int:
        """The 1-D coordinate of a value. Raises LayoutError where the layout has no right inverse."""
        return right_inverse(self.layout, known).offset(minus(self.swizzle(value), self.offset))

    def recast(self, old_bits: int, new_bits: int, known: Known = NOTHING) -> ComposedLayout:
        """Elements of another width in the same memory. Raises LayoutError, also where the offset lies inside an element."""
        inner = recast(self.layout, old_bits, new_bits, known)
        prover, bits = Prover(known), times(self.offset, old_bits)
        if not prover.divides(new_bits, bits):
            raise LayoutError("recast", f"the offset {self.offset} of {old_bits} bits is not one of {new_bits}, or may not be")
        return ComposedLayout(self.swizzle.recast(old_bits, new_bits), prover.quotient(bits, new_bits), inner)

    def __str__(self) -> str:
        """In CuTe's notation: swizzle, offset, layout."""
        return f"{self.swizzle} o {self.offset} o {self.layout}"
