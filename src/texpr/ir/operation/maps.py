"""Maps of tensors, by which hardware finds boxes of them."""

from __future__ import annotations

from math import prod

from texpr.affine.expr import ZERO, Expr
from texpr.ir.value import Buffer
from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span


class TensorMap(Record, eq=False):
    """How the hardware finds boxes of a tensor: encoded by the host before each launch, and passed to the kernel by value.

    Dimension 0 is the innermost, as the driver has it (CUDA driver API, `cuTensorMapEncodeTiled`). `sizes` in elements;
    `strides` in bytes, of dimensions 1 and up; both in sizes of the plan. `box`: elements along each dimension; `steps`: from
    one element to the next. `swizzle` is 0, 32, 64 or 128, `interleave` 0, 16 or 32 bytes; `fill`, "zero" or "nan", is what a
    load writes for elements outside of the tensor. `offset`: elements from the start of `buffer` to the first of the tensor.
    `element`: the driver's name of their type, where it is another one of that size than the buffer's own.

    With `corners` the map is in im2col mode (`cuTensorMapEncodeIm2col`): `box` is the channels of a pixel and the pixels of a
    column. Pixels walk, `steps` apart, through a bounding box that begins and ends as far from the first and from the last one
    as the two numbers for each dimension of space say, W first; then through that of the next image.
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
        """How many dimensions there are."""
        return len(self.sizes)

    @property
    def tile(self) -> tuple[int, ...]:
        """Elements along each dimension of what one copy moves: ⌈box / step⌉, or channels and pixels."""
        if self.corners:
            return self.box
        return tuple(-(-box // step) for box, step in zip(self.box, self.steps, strict=True))

    @property
    def bytes(self) -> int:
        """How many bytes one copy moves, those that it fills included: what its barrier expects."""
        return prod(self.tile) * self.buffer.dtype.bytes

    @property
    def room(self) -> int:
        """Bytes of shared memory that a tile takes: with a swizzle a row takes at least its span."""
        return prod(self.tile[1:]) * max(self.tile[0] * self.buffer.dtype.bytes, self.swizzle)
