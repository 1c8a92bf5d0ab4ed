"""Which elements a copy of the engine moves: each of a tile or of a run, and where it is in the tensor.

Swizzles are computed here from the words of PTX ISA, "Swizzling Modes".
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

from tests.lowering.memory import Element, Fault, Memory

from texpr.affine.expr import Expr
from texpr.ir import kernel as k

if TYPE_CHECKING:
    from tests.lowering.machine import Machine, Thread

Place = tuple[Memory, Element]
Tile = list[tuple[Element, Element | None]]
"""Each element in shared memory, and its index in the tensor, dimension 0 first; None outside of it."""

CHUNK, LINE = 16, 128
"""Bytes that a run is a multiple of, and those that a tile begins at a multiple of."""


def tile(thread: Thread, stmt: k.CopyTensor | k.StoreTensor, map: k.TensorMap) -> tuple[Memory, Tile]:
    """What a copy of a box moves."""
    memory, element = thread.place(stmt.target if isinstance(stmt, k.CopyTensor) else stmt.source)
    size, at = map.buffer.dtype.bytes, tuple(numbers(thread, stmt.at))
    start = _linear(element, memory.shape) * size
    if start % LINE:
        raise Fault(f"a tile begins at {memory.name}{list(element)}, which is no multiple of {LINE} bytes")
    sizes = [e.evaluate(thread.machine.sizes) for e in map.sizes]
    found: Tile = []
    for number, begin in enumerate(_rows(thread, stmt, map, at, sizes)):
        for own in range(map.tile[0]):
            byte = start + number * max(map.tile[0] * size, map.swizzle) + own * size
            if map.swizzle:
                byte ^= (byte >> 7) % (map.swizzle // 16) << 4
            there = (begin[0] + own, *begin[1:])
            inside = all(0 <= i < n for i, n in zip(there, sizes, strict=True))
            found.append((memory.at(_unravelled(byte // size, memory.shape)), there if inside else None))
    return memory, found


def _rows(thread: Thread, stmt: k.CopyTensor | k.StoreTensor, map: k.TensorMap, at: Element, sizes: list[int]) -> list[Element]:
    """Where in the tensor each row of a tile begins."""
    if stmt.rows:
        return [(at[0], int(thread.value(row))) for row in stmt.rows]
    if isinstance(stmt, k.CopyTensor) and map.corners:
        return _pixels(map, at, numbers(thread, stmt.offsets), sizes)
    every = product(*(range(extent) for extent in reversed(map.tile[1:])))
    steps = [(each[::-1], map.steps[1:], at[1:]) for each in every]
    return [(at[0], *(a + o * s for o, s, a in zip(*each, strict=True))) for each in steps]


def _pixels(map: k.TensorMap, at: Element, offsets: list[int], sizes: list[int]) -> list[Element]:
    """The index of channel `at[0]` of each pixel of a column: their numbers in the box are counted up, W fastest."""
    low, high = (tuple(corner[end] for corner in map.corners) for end in (0, 1))
    steps = map.steps[1:-1]
    counts = [(s - 1 + h - b) // e + 1 for s, b, h, e in zip(sizes[1:-1], low, high, steps, strict=True)]
    number, weight = 0, 1
    for first, b, e, count in zip(at[1:-1], low, steps, counts, strict=True):
        if (first - b) % e or not 0 <= (first - b) // e < count:
            raise Fault(f"{map.name}: a column begins at {at}, outside of the box")
        number, weight = number + (first - b) // e * weight, weight * count
    found: list[Element] = []
    for pixel in range(number, number + map.box[1]):
        index = [at[0]]
        for b, e, count, offset in zip(low, steps, counts, offsets, strict=True):
            index.append(b + pixel % count * e + offset)
            pixel //= count
        found.append((*index, at[-1] + pixel))
    return found


def tensor(machine: Machine, map: k.TensorMap, index: Element) -> Place:
    """The element of global memory."""
    memory = machine.globals[map.buffer]
    strides = [map.buffer.dtype.bytes, *(e.evaluate(machine.sizes) for e in map.strides)]
    linear = sum(i * s for i, s in zip(index, strides, strict=True)) // map.buffer.dtype.bytes
    linear += map.offset.evaluate(machine.sizes)
    return memory, memory.at(_unravelled(linear, memory.shape))


def run(thread: Thread, stmt: k.CopyBulk) -> tuple[list[Place], list[Place], int]:
    """The elements of a run, one behind the other in either memory: where they go, where they come from, and their bytes."""
    count, size = stmt.count if stmt.exactly is None else thread.index(stmt.exactly), stmt.source.dtype.bytes
    if not 0 < count <= stmt.count or count * size % CHUNK:
        raise Fault(f"{count} of {stmt.count} elements are copied")
    ends: list[list[Place]] = []
    for first in (stmt.target, stmt.source):
        memory, element = thread.place(first)
        start = _linear(element, memory.shape)
        if start * size % CHUNK:
            raise Fault(f"{memory.name}{list(element)} does not begin a chunk")
        ends.append([(memory, memory.at(_unravelled(start + n, memory.shape))) for n in range(count)])
    return ends[0], ends[1], count * size


def numbers(thread: Thread, exprs: tuple[Expr, ...]) -> list[int]:
    """Index expressions, here and now."""
    return [thread.index(e) for e in exprs]


def _linear(element: Element, shape: Element) -> int:
    total = 0
    for index, extent in zip(element, shape, strict=True):
        total = total * extent + index
    return total


def _unravelled(linear: int, shape: Element) -> Element:
    if not 0 <= linear < prod(shape):
        raise Fault(f"element {linear} of {list(shape)}")
    found: list[int] = []
    for extent in reversed(shape):
        found.append(linear % extent)
        linear //= extent
    return tuple(reversed(found))
