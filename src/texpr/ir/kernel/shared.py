"""Where the arrays that a block shares lie."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
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


IN_BLOCK = (Space.SHARED, Space.CLUSTER)
"""Where an array lies that takes of the shared memory of a block."""


def part(array: Array) -> int:
    """How many elements of an array lie in one block: of one of a cluster, those of one index of its first dimension."""
    whole = elements(array.buffer)
    return whole // array.buffer.shape[0].constant if array.space is Space.CLUSTER else whole


def array_bytes(array: Array) -> int:
    """Bytes that an array takes of a block's memory."""
    return part(array) * array.buffer.dtype.bytes


def shared_places(kernel: Kernel) -> tuple[tuple[Array, int], ...]:
    """Each shared array and its offset in bytes: what it says, or in order, each at a multiple of its alignment."""
    places: list[tuple[Array, int]] = []
    end = 0
    for array in kernel.arrays:
        if array.space in IN_BLOCK:
            at = -(-end // array.align) * array.align if array.at is None else array.at
            places.append((array, at))
            end = max(end, at + array_bytes(array))
    return tuple(places)


def shared_bytes(kernel: Kernel) -> int:
    """Bytes of shared memory of one block, what lies between arrays included."""
    return max((at + array_bytes(array) for array, at in shared_places(kernel)), default=0)


def overlaps(kernel: Kernel) -> Iterator[tuple[Array, Array]]:
    """Pairs of shared arrays of which some bytes are the same, as they stand in the kernel."""
    for (one, here), (other, there) in combinations(shared_places(kernel), 2):
        if max(here, there) < min(here + array_bytes(one), there + array_bytes(other)):
            yield one, other
