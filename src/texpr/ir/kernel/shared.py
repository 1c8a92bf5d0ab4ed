"""The layout of a block's shared memory, and of its columns of tensor memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import prod

from texpr.ir.instr.registers import columns_of
from texpr.ir.kernel import Array, Kernel, Operation, Space, walk
from texpr.ir.operation import Lasts
from texpr.ir.value import Buffer

USUAL_ALIGNMENT = 16
"""The default alignment of an array in bytes: enough for every access of a thread."""


def elements(buffer: Buffer) -> int:
    """The number of elements that an array of constant shape and strides spans."""
    extents = [e.constant for e in buffer.shape]
    if buffer.strides is None:
        return prod(extents)
    return 1 + sum((extent - 1) * stride.constant for extent, stride in zip(extents, buffer.strides, strict=True))


IN_BLOCK = (Space.SHARED, Space.CLUSTER)
"""The memory spaces that are allocated in the shared memory of a block."""


def part(array: Array) -> int:
    """The number of elements of an array in one block; for cluster memory, those of one index of its first dimension."""
    whole = elements(array.buffer)
    return whole // array.buffer.shape[0].constant if array.space is Space.CLUSTER else whole


def array_bytes(array: Array) -> int:
    """The bytes of a block's shared memory that an array takes."""
    return part(array) * array.buffer.dtype.bytes


def shared_places(kernel: Kernel) -> tuple[tuple[Array, int], ...]:
    """Each shared array and its offset in bytes: its `at`, or else the next multiple of its alignment, in order."""
    places: list[tuple[Array, int]] = []
    end = 0
    for array in kernel.arrays:
        if array.space in IN_BLOCK:
            at = -(-end // array.align) * array.align if array.at is None else array.at
            places.append((array, at))
            end = max(end, at + array_bytes(array))
    return tuple(places)


def shared_bytes(kernel: Kernel) -> int:
    """The bytes of shared memory of one block, padding included."""
    return max((at + array_bytes(array) for array, at in shared_places(kernel)), default=0)


def overlaps(kernel: Kernel) -> Iterator[tuple[Array, Array]]:
    """The pairs of shared arrays whose bytes overlap, in order of declaration."""
    for (one, here), (other, there) in combinations(shared_places(kernel), 2):
        if max(here, there) < min(here + array_bytes(one), there + array_bytes(other)):
            yield one, other


def columns_taken(kernel: Kernel) -> int:
    """The columns that a kernel takes; 0 where it takes none."""
    every = (stmt.completion(kernel.map_of) for stmt in walk(kernel.body) if isinstance(stmt, Operation))
    return max((each.count for each in every if isinstance(each, Lasts)), default=0)


def columns_of_arrays(kernel: Kernel) -> Mapping[Buffer, range]:
    """The columns of each array, from the first on that is taken, in their order."""
    arrays = sorted((a for a in kernel.arrays if a.space is Space.TENSOR), key=lambda array: array.at or 0)
    return {a.buffer: range(a.at or 0, (a.at or 0) + columns_of(a.buffer.dtype, a.buffer.shape[0].constant)) for a in arrays}
