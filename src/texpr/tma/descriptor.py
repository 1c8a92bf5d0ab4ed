"""The descriptor of a copy: every field that `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` take (CUDA driver API).

    TensorMap = element, base, sizes, strides, traversal, element strides, interleave, swizzle, promotion, fill
    traversal = Tiled box | Im2col corners, channels, pixels

Values may be symbolic; `texpr.tma.rules` checks the rules of the hardware. Dimension 0 is the innermost.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from texpr.affine.expr import Expr, IntoExpr, expr
from texpr.support.record import Record
from texpr.tma.elements import Element, Fill
from texpr.tma.swizzle import Swizzle


class Interleave(Enum):
    """Bytes of a slice of channels, `CUtensorMapInterleave`; 0 for none."""

    NONE = 0
    B16 = 16
    B32 = 32


class Promotion(Enum):
    """Bytes that the L2 cache fetches at once, `CUtensorMapL2promotion`; 0 for no promotion."""

    NONE = 0
    B64 = 64
    B128 = 128
    B256 = 256


class Tiled(Record):
    """Copies of a box. `box`: elements along each dimension."""

    box: tuple[Expr, ...]


class Im2col(Record):
    """Copies of a column of pixels, in im2col mode.

    `lower`, `upper`: offsets of the corners of the bounding box from the first and the last pixel, W first, one a spatial
    dimension. `channels`: elements of a pixel; `pixels`: of a column.
    """

    lower: tuple[Expr, ...]
    upper: tuple[Expr, ...]
    channels: Expr
    pixels: Expr


Traversal: TypeAlias = Tiled | Im2col


class TensorMap(Record):
    """A descriptor. `base`: the global address in bytes; `sizes`: elements; `strides`: bytes, of dimensions 1 and up."""

    element: Element
    base: Expr
    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    traversal: Traversal
    element_strides: tuple[Expr, ...]
    interleave: Interleave = Interleave.NONE
    swizzle: Swizzle = Swizzle.NONE
    promotion: Promotion = Promotion.NONE
    fill: Fill = Fill.ZERO

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def tile(self) -> tuple[Expr, ...]:
        """The elements that one copy moves along each dimension: ⌈box / element stride⌉, or channels and pixels."""
        if isinstance(self.traversal, Im2col):
            return (self.traversal.channels, self.traversal.pixels)
        return tuple(-((-b) // e) for b, e in zip(self.traversal.box, self.element_strides, strict=True))

    @property
    def bytes(self) -> Expr:
        """The bytes that one copy writes, filled ones included: the transaction count of its barrier."""
        total = expr(self.element.size)
        for extent in self.tile:
            total = total * extent
        return total


class Use(Record):
    """One instruction that uses a descriptor.

    `coordinates`: one a dimension. `shared`: the shared address in bytes. `offsets`: of the filter, in im2col mode.
    `rows`: the four rows of a gather or a scatter, whose coordinates then are the column and the first row. `stores`: from
    shared memory to the tensor.
    """

    map: TensorMap
    coordinates: tuple[Expr, ...]
    shared: Expr
    offsets: tuple[Expr, ...] = ()
    rows: tuple[Expr, ...] = ()
    stores: bool = False


class BulkUse(Record):
    """One bulk copy in one dimension; addresses and size in bytes."""

    shared: Expr
    base: Expr
    size: Expr


def exprs(*values: IntoExpr) -> tuple[Expr, ...]:
    """Integers and symbols as expressions."""
    return tuple(map(expr, values))
