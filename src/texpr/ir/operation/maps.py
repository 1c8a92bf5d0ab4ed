"""Tensor maps, the descriptors of copies of boxes."""

from __future__ import annotations

from math import prod

from texpr.affine.expr import ZERO, Expr
from texpr.ir.value import Buffer
from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span


class TensorMap(Record, eq=False):
    """A tensor map: encoded by the host before each launch, and passed to the kernel by value.

    Dimension 0 is the innermost, as in the driver (CUDA driver API, `cuTensorMapEncodeTiled`). `sizes` in elements;
    `strides` in bytes, of dimensions 1 and up; both in sizes of the plan. `box`: elements along each dimension; `steps`: the
    element strides. `swizzle` is 0, 32, 64 or 128, `interleave` 0, 16 or 32 bytes; `fill`, "zero" or "nan", is what a load
    writes for elements outside of the tensor. `offset`: elements from the start of `buffer` to the first of the tensor.
    `element`: the driver's name of the element type, where it is another one of the same size than the buffer's.

    With `corners` the map is in im2col mode (`cuTensorMapEncodeIm2col`): `box` is the channels of a pixel and the pixels of a
    column. The pixels are visited `steps` apart in a bounding box, image by image. `corners` are, for each spatial dimension, W
    first, the offsets of the bounding box from the first and from the last pixel.
    """

    name: str
    buffer: Buffer
    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int = 0
    interleave: int = 0
    fill: str = "zero"
    offset: Expr = ZERO
    element: str = ""
    corners: tuple[tuple[int, int], ...] = ()
    span: Span = NOWHERE

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def tile(self) -> tuple[int, ...]:
        """Elements along each dimension that one copy moves: ⌈box / step⌉, or channels and pixels in im2col mode."""
        if self.corners:
            return self.box
        return tuple(-(-box // step) for box, step in zip(self.box, self.steps, strict=True))

    @property
    def bytes(self) -> int:
        """Bytes that one copy moves, filled elements included: what its barrier expects."""
        return prod(self.tile) * self.buffer.dtype.bytes

    @property
    def room(self) -> int:
        """Bytes of shared memory that a tile takes: with a swizzle, a row takes at least the span of the swizzle."""
        return prod(self.tile[1:]) * max(self.tile[0] * self.buffer.dtype.bytes, self.swizzle)
