"""Coordinate tensors: the operands of tensor copies, in place of addresses."""

from __future__ import annotations

from texpr.affine.facts import Known
from texpr.layout.algebra.compose import Tiler, composition
from texpr.layout.basis import Path, Stride, StrideTree, stride
from texpr.layout.inttuple import IntoIntTree, IntTree, arithmetic_sum, tidy_tree
from texpr.layout.layout import Layout
from texpr.layout.proof import NOTHING
from texpr.layout.slices import Slice, slice_of
from texpr.support.record import Record


def identity_layout(shape: IntoIntTree) -> Layout:
    """The identity on coordinates, in natural form: `(M,N):(1@0,1@1)`."""
    sizes = tidy_tree(shape)
    return Layout(sizes, _bases(sizes, ()))


def _bases(shape: IntTree, path: Path) -> StrideTree:
    if isinstance(shape, tuple):
        return tuple(_bases(mode, (*path, at)) for at, mode in enumerate(shape))
    own: Stride = stride(1, path)
    return own


class CoordinateTensor(Record):
    """c ↦ base + layout(c), an arithmetic tuple: the base coordinate takes the place of a pointer."""

    base: IntTree
    layout: Layout

    @staticmethod
    def identity(shape: IntoIntTree) -> CoordinateTensor:
        """The coordinates of a tensor of this shape, from the origin."""
        return CoordinateTensor(0, identity_layout(shape))

    def __call__(self, coord: IntoIntTree) -> IntTree:
        """The coordinate at `coord`."""
        return arithmetic_sum(self.base, self.layout(coord))

    def slice(self, coord: Slice) -> CoordinateTensor:
        """The open part, based at the coordinate of the fixed part. Raises LayoutError where `coord` does not fit."""
        part, base = slice_of(self.layout, coord)
        return CoordinateTensor(arithmetic_sum(self.base, base), part)

    def composed(self, tiler: Tiler, known: Known = NOTHING) -> CoordinateTensor:
        """The same coordinates reordered by a tiler. Raises LayoutError as `composition` does."""
        return CoordinateTensor(self.base, composition(self.layout, tiler, known))
