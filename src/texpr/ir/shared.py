"""Where the arrays that a block shares lie."""

from __future__ import annotations

from math import prod

from texpr.ir.kernel import Array, Kernel, Space
from texpr.ir.value import Buffer

USUAL_ALIGNMENT = 16
"""Of an array, in bytes: what any access of a thread needs."""


def elements(buffer: Buffer) -> int:
    """How many elements an array of constant shape has room for."""
    extents = [e.constant for e in buffer.shape]
    if buffer.strides is None:
        return prod(extents)
    return 1 + sum((extent - 1) * stride.constant for extent, stride in zip(extents, buffer.strides, strict=True))


def shared_places(kernel: Kernel) -> tuple[tuple[Array, int], ...]:
    """Each shared array and its offset in bytes: in order, each at a multiple of its alignment."""
    places: list[tuple[Array, int]] = []
    at = 0
    for array in kernel.arrays:
        if array.space is Space.SHARED:
            at = -(-at // array.align) * array.align
            places.append((array, at))
            at += elements(array.buffer) * array.buffer.dtype.bytes
    return tuple(places)


def shared_bytes(kernel: Kernel) -> int:
    """Bytes of shared memory of one block, what lies between arrays included."""
    places = shared_places(kernel)
    if not places:
        return 0
    last, at = places[-1]
    return at + elements(last.buffer) * last.buffer.dtype.bytes
