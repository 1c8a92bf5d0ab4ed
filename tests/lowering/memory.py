"""Memory of plans that are run by hand: elements, who touched them, and which lie in the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from texpr.ir import kernel as k
from texpr.ir.value import Buffer
from texpr.isa.levels import Space
from texpr.support.record import Mutable, field

Element = tuple[int, ...]


class Fault(Exception):
    """What no right program does."""


class Undefined:
    """The value of memory that nothing wrote: it may be carried about, but not used."""


UNDEFINED = Undefined()


class Touch(NamedTuple):
    """One access: by which thread, in which of its stretches between barriers, in which run of a `simd` loop and lane of it."""

    block: Element
    thread: int
    block_epoch: int
    lanes: int
    lane: int
    atomic: bool
    part_epochs: tuple[tuple[int, int], ...] = ()
    cluster: Element | None = None
    cluster_epoch: int = 0


def ordered(old: Touch, new: Touch) -> bool:
    """Whether a barrier lies between, or one thread did both."""
    if old.block != new.block:
        return old.cluster is not None and old.cluster == new.cluster and old.cluster_epoch < new.cluster_epoch
    if old.thread == new.thread:
        return old.lanes != new.lanes or old.lane == new.lane
    if old.block_epoch < new.block_epoch:
        return True
    before = dict(old.part_epochs)
    return any(old.thread // part == new.thread // part and before.get(part, 0) < epoch for part, epoch in new.part_epochs)


Touches = dict[tuple[Element, int, int, bool], Touch]
"""The latest access of each thread and lane, plain and atomic: what is ordered after it is ordered after those before, too."""


class Memory(Mutable, dict=True):
    """The elements of one buffer, and who read and wrote them in this launch.

    `beside`: elements of other arrays that have bytes in common with one of this. To write it is to write them, and what they
    held is gone.
    """

    name: str
    shape: tuple[int, ...]
    values: dict[Element, Any] = field(default_factory=dict[Element, Any])
    reads: dict[Element, Touches] = field(default_factory=dict[Element, Touches])
    writes: dict[Element, Touches] = field(default_factory=dict[Element, Touches])
    beside: dict[Element, list[tuple[Memory, Element]]] = field(default_factory=dict[Element, "list[tuple[Memory, Element]]"])

    def at(self, element: Element) -> Element:
        """`element`, which must be there."""
        if len(element) != len(self.shape) or not all([0 <= e < s for e, s in zip(element, self.shape, strict=True)]):
            raise Fault(f"{self.name}{list(element)} is out of bounds {list(self.shape)}")
        return element

    def touch(self, element: Element, new: Touch, *, writes: bool) -> None:
        """Notes an access; an earlier one of which nothing says that it is over is a race."""
        touched = ((self, element), *self.beside.get(element, ())) if writes else ((self, element),)
        for memory, there in touched:
            for kind in (memory.writes, memory.reads) if writes else (memory.writes,):
                for old in kind.get(there, {}).values():
                    if not ordered(old, new) and not (old.atomic and new.atomic and memory is self):
                        raise Fault(f"race on {memory.name}{list(there)}: {old} and {new}")
            if writes:
                memory.writes.setdefault(there, {})[new.block, new.thread, new.lane, new.atomic] = new
        if not writes:
            self.reads.setdefault(element, {})[new.block, new.thread, new.lane, new.atomic] = new

    def put(self, element: Element, value: Any) -> None:
        """A value for an element; what lay in its bytes is lost."""
        self.values[element] = value
        for memory, there in self.beside.get(element, ()):
            memory.values.pop(there, None)

    def lose(self, element: Element) -> None:
        """Nobody knows what the bytes of an element hold."""
        for memory, there in ((self, element), *self.beside.get(element, ())):
            memory.values.pop(there, None)

    def is_held(self, element: Element) -> bool:
        """Whether the bytes of an element hold anything."""
        return any(there in memory.values for memory, there in ((self, element), *self.beside.get(element, ())))


def made(buffer: Buffer) -> Memory:
    """Memory that a kernel makes, of which nothing is known."""
    return Memory(buffer.name, tuple(e.constant for e in buffer.shape))


def places(kernel: k.Kernel) -> list[tuple[k.Array, int]]:
    """Where in a block's memory arrays begin that lie at a place of their own choice."""
    return [(a, a.at) for a in kernel.arrays if a.space in (Space.SHARED, Space.CLUSTER) and a.at is not None]


def _bytes(array: k.Array, start: int, rank: int) -> Iterator[tuple[int, Element]]:
    """Each byte of an array in the block of a rank, and the element to which it belongs."""
    shape = [e.constant for e in array.buffer.shape]
    width, whole = array.buffer.dtype.bytes, array.space is Space.SHARED
    for element in np.ndindex(*(shape if whole else shape[1:])):
        at = 0
        if array.buffer.strides is None:
            for index, extent in zip(element, shape if whole else shape[1:], strict=True):
                at = at * extent + index
        else:
            at = sum(index * stride.constant for index, stride in zip(element, array.buffer.strides, strict=True))
        found = tuple(map(int, element))
        yield from ((start + at * width + byte, found if whole else (rank, *found)) for byte in range(width))


def overlay(kernel: k.Kernel, memories: Mapping[Buffer, Memory], rank: int) -> None:
    """Says of the memory of one block which elements lie in the same bytes."""
    known = [(array, dict(_bytes(array, at, rank))) for array, at in places(kernel)]
    for (one, mine), (other, theirs) in combinations(known, 2):
        a, b = memories[one.buffer], memories[other.buffer]
        for x, y in dict.fromkeys((mine[byte], theirs[byte]) for byte in mine.keys() & theirs.keys()):
            a.beside.setdefault(x, []).append((b, y))
            b.beside.setdefault(y, []).append((a, x))
