"""Byte-exact semantics of one copy by the tensor memory accelerator, the reference of every test. Tiled copies and bulk
copies.

`tma` is the function of CodeBlock 1 in "TMA Modeling In Depth" (nvFuser, NVIDIA), in 1 to 5 dimensions, with `0 <= index`
tested as well as `index < size`. Dimension 0 is the innermost, as in PTX. Rules of the hardware are not checked here but in
`texpr.tma.rules`. A store writes here what is in bounds; hardware ends a row with a whole chunk of 16 bytes, so a proof must
show that rows of the tensor do. Sources: PTX ISA, "cp.async.bulk", "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", and
"Tensors".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from texpr.support.record import Record
from texpr.tma.elements import Element, Fill, fill_bytes
from texpr.tma.reduce import Reduction, combined, flushed
from texpr.tma.swizzle import Swizzle

Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]


class Address(Record, eq=False):
    """Byte `at` of `memory`, which starts at the address 0; an array `at` stands for many addresses."""

    memory: Bytes
    at: int | Ints = 0

    def __add__(self, count: int | Ints) -> Address:
        return Address(self.memory, self.at + count)


class Direction(Enum):
    """The direction of a copy without a reduction."""

    LOAD = "load"  # global to shared
    STORE = "store"  # shared to global


Op: TypeAlias = Direction | Reduction
"""A load, a store, or a reduction of shared into global memory."""


class Mode(Record):
    """The operation, the swizzle of chunks in shared memory, and the fill of elements outside of the tensor."""

    element: Element
    swizzle: Swizzle = Swizzle.NONE
    fill: Fill = Fill.ZERO


def tma(
    x: Sequence[int],
    sa: Address,
    *,
    ga: Address,
    gs: Sequence[int],
    bs: Sequence[int],
    gr: Sequence[int],
    er: Sequence[int],
    op: Op,
    mode: Mode,
) -> None:
    """Copies the tile at `x`: ⌈bs / er⌉ elements in each dimension, `er` apart in the tensor.

    `x`: coordinates of the corner of the box. `sa`, `ga`: shared and global base. `gs`, `bs`: sizes of tensor and box, in
    elements. `gr`: global strides, in elements (`gr[0]` is 1 in hardware). `er`: element strides. In shared memory the tile
    is dense, dimension 0 fastest; with a swizzle, a row is padded to its span, and chunks are permuted by address.
    """
    tile = [-(-b // e) for b, e in zip(bs, er, strict=True)]
    index = [first + step * at for first, step, at in zip(x, er, positions(tile), strict=True)]
    inside = in_bounds(index, gs)
    move(sa + rows(tile, mode), ga + mode.element.size * weighted(index, gr), inside, op, mode)


def multicast(
    x: Sequence[int],
    places: Sequence[Address],
    mask: int,
    *,
    ga: Address,
    gs: Sequence[int],
    bs: Sequence[int],
    gr: Sequence[int],
    er: Sequence[int],
    mode: Mode,
) -> None:
    """A load for several blocks of a cluster: bit r of `mask` says whether block r gets the tile, at `places[r]`.

    The other arguments are those of `tma`. Raises ValueError where no block, or one outside of the cluster, gets it. PTX ISA,
    "cp.async.bulk.tensor", "multicast::cluster".
    """
    if not 0 < mask < 1 << len(places):
        raise ValueError(f"a mask of {mask:#x} in a cluster of {len(places)} blocks")
    for rank, place in enumerate(places):
        if mask >> rank & 1:
            tma(x, place, ga=ga, gs=gs, bs=bs, gr=gr, er=er, op=Direction.LOAD, mode=mode)


def positions(shape: Sequence[int]) -> list[Ints]:
    """For each dimension, the index along it of each element of a dense array; the arrays have dimension 0 last."""
    return list(np.indices(tuple(reversed(shape)), dtype=np.int64))[::-1]


def in_bounds(index: Sequence[Ints], sizes: Sequence[int]) -> Bools:
    """The bounds check of the engine: 0 <= index < size in every dimension."""
    tests = [(at >= 0) & (at < size) for at, size in zip(index, sizes, strict=True)]
    return np.logical_and.reduce(tests)


def weighted(index: Sequence[Ints], strides: Sequence[int]) -> Ints:
    """Σ index · stride."""
    return np.sum([at * stride for at, stride in zip(index, strides, strict=True)], axis=0)


def rows(tile: Sequence[int], mode: Mode) -> Ints:
    """The offset in bytes of each element of a tile from the base, before the swizzle."""
    pitch = mode.swizzle.pitch(tile[0] * mode.element.size)
    number = np.arange(prod(tile[1:]), dtype=np.int64).reshape(*reversed(tile[1:]), 1)
    return number * pitch + np.arange(tile[0]) * mode.element.size


def move(near: Address, far: Address, inside: Bools, op: Op, mode: Mode) -> None:
    """Copies elements between `near` in shared and `far` in global memory, which is accessed only `inside` of the tensor."""
    step = np.arange(mode.element.size)
    here = mode.swizzle(np.asarray(near.at)[..., None] + step)
    there = np.asarray(far.at)[inside][:, None] + step
    shared, tensor = near.memory, far.memory
    match op:
        case Direction.LOAD:
            shared[here] = np.frombuffer(fill_bytes(mode.element, mode.fill), np.uint8)
            shared[here[inside]] = tensor[there]
        case Direction.STORE:
            tensor[there] = shared[here[inside]]
        case Reduction():
            old, new = tensor[there].view(mode.element.storage), shared[here[inside]].view(mode.element.storage)
            tensor[there] = combined(op, mode.element, old, new).view(np.uint8)


def interleaved(
    x: Sequence[int],
    sa: Address,
    *,
    ga: Address,
    gs: Sequence[int],
    bs: Sequence[int],
    gr: Sequence[int],
    er: Sequence[int],
    op: Op,
    mode: Mode,
    slice_bytes: int,
    slice_stride: int,
) -> None:
    """A copy of a tensor NC/8[D][H]WC8: channels lie in slices of 16 or 32 bytes, `slice_stride` elements apart.

    The other arguments are those of `tma`; dimension 0 counts channels, in whole slices, and `er[0]` steps over slices. In
    shared memory the order is that of the layout's name. PTX ISA, "Tensors", "Interleave layout"; it does not specify which
    of the descriptor's strides is that of slices, nor the order in shared memory: both are an interpretation.
    """
    count = slice_bytes // mode.element.size

    def with_slices(first: int, values: Sequence[int], slices: int) -> tuple[int, ...]:
        return (first, *values[1:-1], slices, values[-1])

    tma(
        with_slices(0, x, x[0] // count),
        sa,
        ga=ga,
        gs=with_slices(count, gs, -(-gs[0] // count)),
        bs=with_slices(count, bs, bs[0] // count),
        gr=with_slices(1, gr, slice_stride),
        er=with_slices(1, er, er[0]),
        op=op,
        mode=mode,
    )


def bulk(target: Address, source: Address, size: int, combine: tuple[Reduction, Element] | None = None) -> None:
    """Copies `size` bytes in one dimension, or combines their elements with the target.

    PTX ISA, "cp.async.bulk" and "cp.reduce.async.bulk", which flushes subnormal numbers in sums of f32.
    """
    there, here = (end.at + np.arange(size) for end in (target, source))
    new = source.memory[here]
    if combine is not None:
        reduction, element = combine
        old, given = target.memory[there].view(element.storage), new.view(element.storage)
        if element.name == "float32" and reduction is Reduction.ADD:
            new = flushed(combined(reduction, element, flushed(old), flushed(given))).view(np.uint8)
        else:
            new = combined(reduction, element, old, given).view(np.uint8)
    target.memory[there] = new


def four_rows(
    column: int,
    chosen: Sequence[int],
    sa: Address,
    *,
    ga: Address,
    gs: Sequence[int],
    box: int,
    pitch: int,
    op: Op,
    mode: Mode,
) -> None:
    """`tile::gather4` (load) and `tile::scatter4` (store): four rows of a matrix, consecutive in shared memory.

    Row r of the tile is `box` elements from (column, chosen[r]). `gs`: two sizes; `pitch`: elements between rows of the tensor.
    """
    for number, row in enumerate(chosen):
        place = sa + number * mode.swizzle.pitch(box * mode.element.size)
        tma((column, row), place, ga=ga, gs=gs, bs=(box, 1), gr=(1, pitch), er=(1, 1), op=op, mode=mode)
