"""The tensor memory accelerator of `machine`: copies of tiles that land when they like, barriers that count bytes, proxies.

A tile that is on its way is no one's: who touches it has to have seen the phase that its bytes belong to. What threads write, a
store of a tile sees only behind their fence. Swizzles are computed here from the words of PTX ISA, "Swizzling Modes".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

from texpr.ir import kernel as k

if TYPE_CHECKING:
    from tests.lowering.machine import Machine, Thread
    from tests.lowering.memory import Memory, Touch

Element = tuple[int, ...]
Spot = tuple[int, Element]
"""An element of a memory, or a barrier: which memory (by identity), and where."""


class Fault(Exception):
    """What no right program does."""


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


@dataclass
class Phases:
    """A barrier: how many arrivals a phase takes, what the running one still waits for, and how many have completed."""

    count: int
    arrivals: int
    bytes: int = 0
    completed: int = 0

    def settle(self) -> None:
        if self.arrivals == 0 and self.bytes == 0:
            self.completed, self.arrivals = self.completed + 1, self.count


@dataclass(frozen=True)
class Flight:
    """A copy to shared memory: elements with their values, and the barrier."""

    values: tuple[tuple[Memory, Element, Any], ...]
    barrier: Spot
    bytes: int


@dataclass
class Outgoing:
    """A copy from shared memory: for each element where it comes from and where it goes. `read`: whether it has been read,
    and then it is `found`. Where it goes nobody knows meanwhile what is there."""

    group: int
    moves: tuple[tuple[Memory, Element, tuple[Memory, Element]], ...]
    reduce: str | None = None
    read: bool = False
    found: list[Any] = field(default_factory=list[Any])


@dataclass
class Engine:
    """What is on its way in one block."""

    machine: Machine
    random: Random
    maps: dict[str, k.TensorMap]
    barriers: dict[Spot, Phases] = field(default_factory=dict[Spot, Phases])
    flights: list[Flight] = field(default_factory=list[Flight])
    landed: dict[Spot, tuple[Spot, int]] = field(default_factory=dict[Spot, "tuple[Spot, int]"])
    reading: Counter[Spot] = field(default_factory=Counter[Spot])
    unfenced: dict[Spot, int] = field(default_factory=dict[Spot, int])
    fenced: dict[Spot, Touch] = field(default_factory=dict[Spot, "Touch"])

    def spot(self, thread: Thread, load: Any) -> Spot:
        memory, element = thread.place(load)
        return id(memory), element

    def phases(self, thread: Thread, load: Any) -> Phases:
        found = self.barriers.get(self.spot(thread, load))
        if found is None:
            raise Fault(f"{load.buffer.name} is used before it is made")
        return found

    def step(self, thread: Thread, stmt: k.Transfer) -> bool:
        """One statement; False where the thread has to wait."""
        match stmt:
            case k.BarrierInit():
                self.barriers[self.spot(thread, stmt.barrier)] = Phases(stmt.count, stmt.count)
            case k.BarrierExpect() | k.BarrierArrive():
                phases = self.phases(thread, stmt.barrier)
                size = 0 if isinstance(stmt, k.BarrierArrive) else stmt.bytes
                if isinstance(stmt, k.BarrierExpect) and stmt.exactly is not None:
                    size = thread.index(stmt.exactly)
                phases.arrivals, phases.bytes = phases.arrivals - 1, phases.bytes + size
                if phases.arrivals < 0:
                    raise Fault(f"{stmt.barrier.buffer.name}: more arrivals than a phase takes")
                phases.settle()
            case k.BarrierWait():
                phases, parity = self.phases(thread, stmt.barrier), thread.index(stmt.parity)
                if phases.completed % 2 == parity:  # the running phase has this parity
                    return False
                thread.seen[self.spot(thread, stmt.barrier)] = phases.completed
            case k.CopyTensor():
                self.load(thread, stmt)
            case k.StoreTensor():
                self.store(thread, stmt)
            case k.CopyBulk():
                self.run(thread, stmt)
            case k.CommitBulk():
                thread.bulk_groups += 1
            case k.WaitBulk():
                self.finish(thread, stmt.pending, stmt.read)
            case k.Fence(kind):
                own = [spot for spot, by in self.unfenced.items() if by == thread.number and kind == "async"]
                for spot in own:
                    del self.unfenced[spot]
                    self.fenced[spot] = thread.touch()
            case _:
                raise AssertionError(stmt)
        return True

    def pixels(self, map: k.TensorMap, at: Element, offsets: list[int], sizes: list[int]) -> list[Element]:
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

    def column(self, thread: Thread, stmt: k.CopyTensor | k.StoreTensor) -> list[tuple[Memory, Element, Element | None]]:
        """The tile of a copy in im2col mode, or of four rows."""
        loads = isinstance(stmt, k.CopyTensor)
        map, (memory, element) = self.maps[stmt.map], thread.place(stmt.target if loads else stmt.source)
        size, at = map.buffer.dtype.bytes, tuple(map_index(thread, stmt.at))
        sizes = [e.evaluate(self.machine.sizes) for e in map.sizes]
        if loads and map.corners:
            starts = self.pixels(map, at, map_index(thread, stmt.offsets), sizes)
        else:
            starts = [(at[0], int(thread.value(row))) for row in stmt.rows]
        start = _linear(element, memory.shape) * size
        found: list[tuple[Memory, Element, Element | None]] = []
        for number, begin in enumerate(starts):
            for own in range(map.box[0]):
                byte = start + number * max(map.box[0] * size, map.swizzle) + own * size
                if map.swizzle:
                    byte ^= (byte >> 7) % (map.swizzle // 16) << 4
                there = (begin[0] + own, *begin[1:])
                inside = all(0 <= i < n for i, n in zip(there, sizes, strict=True))
                found.append((memory, _unravelled(byte // size, memory.shape), there if inside else None))
        return found

    def tile(self, map: k.TensorMap, at: Element, thread: Thread, first: Any) -> list[tuple[Memory, Element, Element | None]]:
        """Each element of the tile in shared memory, and its index in the tensor, dimension 0 first; None outside of it."""
        memory, element = thread.place(first)
        size = map.buffer.dtype.bytes
        start = _linear(element, memory.shape) * size
        pitch = max(map.tile[0] * size, map.swizzle)
        sizes = [e.evaluate(self.machine.sizes) for e in map.sizes]
        found: list[tuple[Memory, Element, Element | None]] = []
        for number, index in enumerate(product(*(range(t) for t in reversed(map.tile)))):
            own = tuple(reversed(index))
            byte = start + number // map.tile[0] * pitch + own[0] * size
            if map.swizzle:
                byte ^= (byte >> 7) % (map.swizzle // 16) << 4
            there = tuple(a + o * s for a, o, s in zip(at, own, map.steps, strict=True))
            inside = all(0 <= i < n for i, n in zip(there, sizes, strict=True))
            found.append((memory, _unravelled(byte // size, memory.shape), there if inside else None))
        return found

    def tensor(self, map: k.TensorMap, index: Element) -> tuple[Memory, Element]:
        """The element of global memory."""
        memory = self.machine.globals[map.buffer]
        strides = [map.buffer.dtype.bytes, *(e.evaluate(self.machine.sizes) for e in map.strides)]
        linear = sum(i * s for i, s in zip(index, strides, strict=True)) // map.buffer.dtype.bytes
        linear += map.offset.evaluate(self.machine.sizes)
        return memory, memory.at(_unravelled(linear, memory.shape))

    def run(self, thread: Thread, stmt: k.CopyBulk) -> None:
        """A run of elements, one behind the other in either memory."""
        count, size = stmt.count if stmt.exactly is None else thread.index(stmt.exactly), stmt.source.dtype.bytes
        if not 0 < count <= stmt.count or count * size % 16:
            raise Fault(f"{count} of {stmt.count} elements are copied")
        ends: list[list[tuple[Memory, Element]]] = []
        for first in (stmt.target, stmt.source):
            memory, element = thread.place(first)
            start = _linear(element, memory.shape)
            if start * size % 16:
                raise Fault(f"{memory.name}{list(element)} does not begin a chunk")
            ends.append([(memory, memory.at(_unravelled(start + n, memory.shape))) for n in range(count)])
        targets, sources = ends
        if stmt.barrier is not None:
            pairs = tuple((memory, element, source) for (memory, element), source in zip(targets, sources, strict=True))
            self.take_off(thread, pairs, stmt.barrier, count * size)
            return
        for memory, element in sources:
            self.leave(thread, memory, element)
        moves = tuple((memory, element, target) for (memory, element), target in zip(sources, targets, strict=True))
        self.send(thread, moves, stmt.reduce)

    def load(self, thread: Thread, stmt: k.CopyTensor) -> None:
        map = self.maps[stmt.map]
        further = bool(stmt.offsets or stmt.rows)
        tile = self.column(thread, stmt) if further else self.tile(map, tuple(map_index(thread, stmt.at)), thread, stmt.target)
        pairs = tuple((memory, element, None if at is None else self.tensor(map, at)) for memory, element, at in tile)
        self.take_off(thread, pairs, stmt.barrier, map.bytes * max(1, len(stmt.rows)))

    def take_off(
        self,
        thread: Thread,
        pairs: tuple[tuple[Memory, Element, tuple[Memory, Element] | None], ...],
        barrier_at: Any,
        size: int,
    ) -> None:
        """Starts a copy to shared memory: each element, and where it comes from, or nowhere, which is zero."""
        barrier, phases = self.spot(thread, barrier_at), self.phases(thread, barrier_at)
        values: list[tuple[Memory, Element, Any]] = []
        for memory, element, origin in pairs:
            self.check(thread, memory, element)
            memory.touch(element, thread.touch(), writes=True)
            value: Any = 0
            if origin is not None:
                source, there = origin
                source.touch(there, thread.touch(), writes=False)
                value = source.values[there]
            values.append((memory, element, value))
        for memory, element, _ in values:
            memory.values.pop(element, None)
            memory.writes.pop(element, None)  # whoever comes next is ordered by the phase
            memory.reads.pop(element, None)
            self.landed[id(memory), element] = barrier, phases.completed + 1
        self.flights.append(Flight(tuple(values), barrier, size))

    def land(self) -> bool:
        """One copy comes to its end, if there is any."""
        if not self.flights:
            return False
        flight = self.flights.pop(self.random.randrange(len(self.flights)))
        for memory, element, value in flight.values:
            memory.values[element] = value
        phases = self.barriers[flight.barrier]
        phases.bytes -= flight.bytes
        phases.settle()
        return True

    def check(self, thread: Thread, memory: Memory, element: Element, *, writes: bool = True) -> None:
        """What a thread may touch: tiles whose phase it has seen, and for writes none that a store still reads."""
        there = self.landed.get((id(memory), element))
        if there is not None and thread.seen.get(there[0], 0) < there[1]:
            raise Fault(f"{memory.name}{list(element)} is touched by a thread that has not waited for it")
        if writes and self.reading[id(memory), element]:
            raise Fault(f"{memory.name}{list(element)} is written while a store reads it")

    def store(self, thread: Thread, stmt: k.StoreTensor) -> None:
        map = self.maps[stmt.map]
        moves: list[tuple[Memory, Element, tuple[Memory, Element]]] = []
        whole = not stmt.rows
        tile = self.tile(map, tuple(map_index(thread, stmt.at)), thread, stmt.source) if whole else self.column(thread, stmt)
        there = [index for _, _, index in tile if index is not None]
        if len(there) != len(set(there)):
            raise Fault(f"{map.name}: two rows of a tile are stored to one")
        for memory, element, index in tile:
            if index is None:
                continue
            self.leave(thread, memory, element)
            moves.append((memory, element, self.tensor(map, index)))
        self.send(thread, tuple(moves), stmt.reduce)

    def send(
        self, thread: Thread, moves: tuple[tuple[Memory, Element, tuple[Memory, Element]], ...], reduce: str | None
    ) -> None:
        """A copy from shared memory starts: until it is waited for, nobody knows what is there."""
        for _, _, (target, at) in moves if reduce is None else ():
            target.touch(at, thread.touch(), writes=True)
            target.lose(at)
        thread.stores.append(Outgoing(thread.bulk_groups, moves, reduce))

    def leave(self, thread: Thread, memory: Memory, element: Element) -> None:
        """An element that is on its way out of shared memory, behind a fence of who wrote it."""
        self.check(thread, memory, element, writes=False)
        memory.touch(element, thread.touch(), writes=False)
        fence = self.fenced.get((id(memory), element))
        if (id(memory), element) in self.unfenced or (fence is not None and not ordered(fence, thread.touch())):
            raise Fault(f"{memory.name}{list(element)} is stored, but its writer has passed no fence")
        self.reading[id(memory), element] += 1

    def finish(self, thread: Thread, pending: int, read: bool) -> None:
        """Groups but the last `pending` have read their tiles; without `read` they have written too."""
        done = [each for each in thread.stores if each.group < thread.bulk_groups - pending]
        for each in done:
            if not each.read:
                each.read, each.found = True, [memory.values.get(element) for memory, element, _ in each.moves]
                for memory, element, _ in each.moves:
                    self.reading[id(memory), element] -= 1
            if read:
                continue
            thread.stores.remove(each)
            for (_, _, (target, at)), new in zip(each.moves, each.found, strict=True):
                if each.reduce is None:
                    target.touch(at, thread.touch(), writes=True)
                    if target.is_held(at):
                        raise Fault(f"{target.name}{list(at)} is written while it is stored to")
                    if new is not None:
                        target.put(at, new)
                else:  # at once, whoever else combines there
                    old = target.values[at]
                    target.values[at] = {"add": old + new, "min": min(old, new), "max": max(old, new)}[each.reduce]


def map_index(thread: Thread, at: tuple[Any, ...]) -> list[int]:
    return [thread.index(e) for e in at]


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
