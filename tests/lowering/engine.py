"""The tensor memory accelerator of `machine`: copies of tiles that land when they like, barriers that count bytes, proxies.

A tile that is on its way is no one's: who touches it has to know that the phase which its bytes belong to is complete, and so
has who begins the next one, or sends to it. Known is what a thread waited for itself, or another one before a barrier that both
reached; whatever else may seem so by chance is none of it. What threads write, a copy sees only behind their fence. A copy for
several blocks of a cluster lands in each when it likes, and at that block's barrier; a block to which one is sent has to be
there, and to wait for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from tests.lowering import boxes
from tests.lowering.boxes import Place
from tests.lowering.memory import Element, Fault, Memory, Touch, ordered

from texpr.ir import kernel as k
from texpr.ir.value import Buffer, Load
from texpr.support.record import Mutable, Record, field

if TYPE_CHECKING:
    from tests.lowering.machine import Machine, Thread

Spot = tuple[int, Element]
"""An element of a memory, or a barrier: which memory (by identity), and where."""

COMBINED: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "min": min, "max": max, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}  # fmt: skip


class Phases(Mutable):
    """A barrier: how many arrivals a phase takes, what the running one still waits for, and how many have completed.

    `made`: by whom; `fenced`: behind which fence that is known. `seen`: who waited for how many phases. `air`: how many copies
    to it are on their way, of the running phase.
    """

    name: str
    rank: int
    count: int
    arrivals: int
    made: Touch
    fenced: Touch | None = None
    bytes: int = 0
    completed: int = 0
    seen: list[list[Touch]] = field(default_factory=lambda: [[]])
    sent: int = 0
    air: int = 0

    def settle(self) -> None:
        if self.arrivals == 0 and self.bytes == 0:
            if self.air:
                raise Fault(f"{self.name}: a phase completes before all has come that is sent for it")
            self.completed, self.arrivals = self.completed + 1, self.count
            self.seen.append([])

    def known(self, now: Touch, *, engine: bool = False) -> int:
        """Of how many phases it is known `now` that they have completed. Raises Fault where it is not known to be made."""
        for phase in range(self.completed, 0, -1):
            if any(ordered(old, now) for old in self.seen[phase]):
                return phase
        own = (self.made.block, self.made.thread) == (now.block, now.thread) and not engine
        if not own and (self.fenced is None or not ordered(self.fenced, now)):
            raise Fault(f"{self.name} is perhaps not made yet")
        return 0


class Flight(Record):
    """A copy to shared memory: elements with their values, where these come from, and the barrier."""

    values: tuple[tuple[Memory, Element, Any, Place | None], ...]
    phases: Phases
    bytes: int


class Outgoing(Mutable):
    """A copy from shared memory: for each element where it comes from and where it goes. `read`: whether it has been read,
    and then it is `found`. Where it goes nobody knows meanwhile what is there."""

    group: int
    moves: tuple[tuple[Memory, Element, Place], ...]
    reduce: str | None = None
    read: bool = False
    found: list[Any] = field(default_factory=list[Any])


class Engine(Mutable):
    """What is on its way in the blocks of a cluster, of which `blocks` are what each shares. `gone`: those that have ended.

    `taken`: what copies that are on their way read, and of which phase they are.
    """

    machine: Machine
    random: Random
    maps: dict[str, k.TensorMap]
    blocks: Sequence[Mapping[Buffer, Memory]] = ()
    barriers: dict[Spot, Phases] = field(default_factory=dict[Spot, Phases])
    flights: list[Flight] = field(default_factory=list[Flight])
    landed: dict[Spot, tuple[Phases, int]] = field(default_factory=dict[Spot, "tuple[Phases, int]"])
    taken: dict[Spot, list[tuple[Phases, int]]] = field(default_factory=dict[Spot, "list[tuple[Phases, int]]"])
    reading: Counter[Spot] = field(default_factory=Counter[Spot])
    unfenced: dict[Spot, int] = field(default_factory=dict[Spot, int])
    fenced: dict[Spot, Touch] = field(default_factory=dict[Spot, "Touch"])
    gone: set[int] = field(default_factory=set[int])

    def phases(self, thread: Thread, load: Load, rank: int | None = None) -> Phases:
        """A barrier of the thread's block, or of that of a rank."""
        memory, element = thread.place(load)
        found = self.barriers.get((id(memory if rank is None else self.blocks[rank][load.buffer]), element))
        if found is None:
            raise Fault(f"{load.buffer.name} is used before it is made")
        return found

    def step(self, thread: Thread, stmt: k.Operation) -> bool:
        """One statement; False where the thread has to wait."""
        match stmt:
            case k.BarrierInit():
                self.make(thread, stmt)
            case k.BarrierExpect() | k.BarrierArrive():
                self.arrive(thread, stmt)
            case k.BarrierWait():
                return self.wait(thread, stmt)
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
            case k.Fence("init"):
                for each in self.barriers.values():
                    if (each.made.block, each.made.thread) == (thread.block, thread.number) and each.fenced is None:
                        each.fenced = thread.touch()
            case k.Fence():
                own = [spot for spot, by in self.unfenced.items() if by == thread.base + thread.number]
                for spot in own:
                    del self.unfenced[spot]
                    self.fenced[spot] = thread.touch()
            case _:
                raise AssertionError(stmt)
        return True

    def make(self, thread: Thread, stmt: k.BarrierInit) -> None:
        memory, element = thread.place(stmt.barrier)
        if (id(memory), element) in self.barriers:
            raise Fault(f"{memory.name}{list(element)} is made twice")
        name, rank = f"{memory.name}{list(element)}", thread.base // self.machine.wide
        self.barriers[id(memory), element] = Phases(name, rank, stmt.count, stmt.count, thread.touch())

    def arrive(self, thread: Thread, stmt: k.BarrierExpect | k.BarrierArrive) -> None:
        """An arrival, which begins a phase: all have to be done with the one before."""
        phases, now = self.phases(thread, stmt.barrier), thread.touch()
        size = 0 if isinstance(stmt, k.BarrierArrive) else stmt.bytes
        if isinstance(stmt, k.BarrierExpect) and stmt.exactly is not None:
            size = thread.index(stmt.exactly)
        if phases.known(now) < phases.completed or not all(ordered(old, now) for old in phases.seen[phases.completed]):
            raise Fault(f"{phases.name}: a phase begins, and who does not know that the one before is complete, or waited for")
        phases.arrivals, phases.bytes = phases.arrivals - 1, phases.bytes + size
        if phases.arrivals < 0:
            raise Fault(f"{phases.name}: more arrivals than a phase takes")
        phases.settle()

    def wait(self, thread: Thread, stmt: k.BarrierWait) -> bool:
        """A wait for a parity. It sees no more than what is sure of who waits: the next phase, or none, by the parity."""
        phases, parity, now = self.phases(thread, stmt.barrier), thread.index(stmt.parity), thread.touch()
        if phases.completed % 2 == parity:  # the running phase has this parity
            return False
        if phases.arrivals < phases.count:
            raise Fault(f"{phases.name}: a thread waits for a phase when the next one has begun")
        known = phases.known(now)
        phases.seen[known + (known % 2 == parity)].append(now)
        return True

    def run(self, thread: Thread, stmt: k.CopyBulk) -> None:
        """A run of elements."""
        targets, sources, size = boxes.run(thread, stmt)
        if stmt.barrier is not None:
            pairs = tuple((*target, source) for target, source in zip(targets, sources, strict=True))
            self.take_off(thread, pairs, self.phases(thread, stmt.barrier), size)
            return
        for memory, element in sources:
            self.leave(thread, memory, element)
        self.send(thread, tuple((*source, target) for source, target in zip(sources, targets, strict=True)), stmt.reduce)

    def load(self, thread: Thread, stmt: k.CopyTensor) -> None:
        """A box, to this block or to some of the cluster."""
        map = self.maps[stmt.map]
        memory, tile = boxes.tile(thread, stmt, map)
        first, size = thread.index(stmt.first), map.bytes * max(1, len(stmt.rows))
        for rank in [first + peer for peer in stmt.peers] or [None]:
            if rank is not None and rank not in range(len(self.blocks)):
                raise Fault(f"{map.name}: a box goes to block {rank}, which is none of the cluster")
            there = memory if rank is None else self.blocks[rank][stmt.target.buffer]
            pairs = tuple((there, own, None if at is None else boxes.tensor(self.machine, map, at)) for own, at in tile)
            self.take_off(thread, pairs, self.phases(thread, stmt.barrier, rank), size)

    def take_off(
        self, thread: Thread, pairs: Iterable[tuple[Memory, Element, Place | None]], phases: Phases, size: int
    ) -> None:
        """Starts a copy to shared memory: each element, and where it comes from, or nowhere, which is zero."""
        now, found = thread.touch(), list[tuple[Memory, Element, Any, Place | None]]()
        if phases.rank in self.gone:
            raise Fault(f"{phases.name}: something is sent to a block that has ended")
        if phases.known(now, engine=True) < phases.completed:
            raise Fault(f"{phases.name}: something is sent by who does not know that the phase before is complete")
        for memory, element, origin in pairs:
            self.check(thread, memory, element)
            self.check_fence(thread, memory, element)
            memory.touch(element, now, writes=True)
            value: Any = 0
            if origin is not None:
                source, there = origin
                self.check_written(source, there)
                source.touch(there, now, writes=False)
                self.taken.setdefault((id(source), there), []).append((phases, phases.completed + 1))
                value = source.values.get(there)
            found.append((memory, element, value, origin))
        for memory, element, _, _ in found:
            memory.values.pop(element, None)
            memory.writes.pop(element, None)  # whoever comes next is ordered by the phase
            memory.reads.pop(element, None)
            self.landed[id(memory), element] = phases, phases.completed + 1
        phases.air, phases.sent = phases.air + 1, phases.completed + 1
        self.flights.append(Flight(tuple(found), phases, size))

    def land(self) -> bool:
        """One copy comes to its end, if there is any."""
        if not self.flights:
            return False
        flight = self.flights.pop(self.random.randrange(len(self.flights)))
        for memory, element, value, origin in flight.values:
            if origin is not None and origin[0].values.get(origin[1]) is not value:
                raise Fault(f"{origin[0].name}{list(origin[1])} is written while it is copied from")
            if value is not None:
                memory.values[element] = value
        phases = flight.phases
        phases.bytes, phases.air = phases.bytes - flight.bytes, phases.air - 1
        phases.settle()
        return True

    def end(self, rank: int) -> None:
        """A block ends: what was sent to it has come, and was waited for."""
        self.gone.add(rank)
        for phases in self.barriers.values():
            if phases.rank == rank and phases.sent and not any(phases.seen[phases.sent :]):
                raise Fault(f"{phases.name}: a block ends, and has not waited for what is sent to it")

    def check(self, thread: Thread, memory: Memory, element: Element, *, writes: bool = True) -> None:
        """What a thread may touch: tiles that it knows to be there, and for writes nothing that a copy still reads."""
        spot = id(memory), element
        there = self.landed.get(spot)
        if there is not None and there[0].known(thread.touch()) < there[1]:
            raise Fault(f"{memory.name}{list(element)} is touched by a thread that has not waited for it")
        if writes and self.reading[spot]:
            raise Fault(f"{memory.name}{list(element)} is written while a store reads it")
        if writes and any(phases.known(thread.touch()) < phase for phases, phase in self.taken.get(spot, ())):
            raise Fault(f"{memory.name}{list(element)} is written while it is copied from")

    def wrote(self, thread: Thread, memory: Memory, element: Element, *, shared: bool) -> None:
        """What a thread writes the engine knows behind a fence alone, and in global memory when the kernel has ended."""
        if shared:
            self.unfenced[id(memory), element] = thread.base + thread.number
        else:
            self.machine.written.add((id(memory), element))

    def check_written(self, memory: Memory, element: Element) -> None:
        """That no thread wrote an element of global memory which the engine touches."""
        if (id(memory), element) in self.machine.written:
            raise Fault(f"{memory.name}{list(element)} is written by a thread, which no copy of the same kernel knows")

    def check_fence(self, thread: Thread, memory: Memory, element: Element) -> None:
        """That the engine knows what threads wrote to an element of shared memory."""
        fence = self.fenced.get((id(memory), element))
        if (id(memory), element) in self.unfenced or (fence is not None and not ordered(fence, thread.touch())):
            raise Fault(f"{memory.name}{list(element)} is copied, but its writer has passed no fence")

    def store(self, thread: Thread, stmt: k.StoreTensor) -> None:
        """A tile goes to its box."""
        map = self.maps[stmt.map]
        memory, tile = boxes.tile(thread, stmt, map)
        inside = [(element, index) for element, index in tile if index is not None]
        if len(inside) != len({index for _, index in inside}):
            raise Fault(f"{map.name}: two rows of a tile are stored to one")
        for element, _ in inside:
            self.leave(thread, memory, element)
        self.send(thread, tuple((memory, own, boxes.tensor(self.machine, map, at)) for own, at in inside), stmt.reduce)

    def send(self, thread: Thread, moves: tuple[tuple[Memory, Element, Place], ...], reduce: str | None) -> None:
        """A copy from shared memory starts: until it is waited for, nobody knows what is there."""
        for _, _, (target, at) in moves:
            self.check(thread, target, at)
            self.check_written(target, at)
            target.touch(at, thread.touch(atomic=reduce is not None), writes=True)
            if reduce is None:
                target.lose(at)
        thread.stores.append(Outgoing(thread.bulk_groups, moves, reduce))

    def leave(self, thread: Thread, memory: Memory, element: Element) -> None:
        """An element that is on its way out of shared memory, behind a fence of who wrote it."""
        self.check(thread, memory, element, writes=False)
        memory.touch(element, thread.touch(), writes=False)
        self.check_fence(thread, memory, element)
        self.reading[id(memory), element] += 1

    def finish(self, thread: Thread, pending: int, read: bool) -> None:
        """Groups but the last `pending` have read their tiles; without `read` they have written too."""
        done = [each for each in thread.stores if each.group < thread.bulk_groups - pending]
        for each in done:
            if not each.read:
                each.read, each.found = True, [memory.values.get(element) for memory, element, _ in each.moves]
                for memory, element, _ in each.moves:
                    memory.touch(element, thread.touch(), writes=False)
                    self.reading[id(memory), element] -= 1
            if read:
                continue
            thread.stores.remove(each)
            for (_, _, (target, at)), new in zip(each.moves, each.found, strict=True):
                target.touch(at, thread.touch(atomic=each.reduce is not None), writes=True)
                if each.reduce is not None:  # at once, whoever else combines there
                    if new is None or at not in target.values:
                        raise Fault(f"{target.name}{list(at)} is combined before anything is written there")
                    target.values[at] = COMBINED[each.reduce](target.values[at], new)
                elif target.is_held(at):
                    raise Fault(f"{target.name}{list(at)} is written while it is stored to")
                elif new is not None:
                    target.put(at, new)
