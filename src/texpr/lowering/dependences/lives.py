"""Live ranges of a block's arrays, in steps, and the order of accesses to arrays that share memory.

An array is live from each step that writes an element to every step that may read the value: at both, and at each step that may
execute in between. If the value is carried by a loop, or one end alone is in a loop, it is live in the whole body of the loop.
Arrays whose live ranges are disjoint may share memory. Then accesses to one are ordered after accesses to the other, as
dependences of one element are (WAR, WAW), and barriers are placed for these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import atomic_binds, mark
from texpr.ir.program.marks import Tensor
from texpr.ir.steps import Node, Step, leaves
from texpr.ir.value import Buffer
from texpr.lowering.build.team import Around, surroundings
from texpr.lowering.dependences.conflict import Conflict, End
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.dependences.needs import Needs
from texpr.mapping.nest import Nest
from texpr.support.record import Mutable, Record, field


class Turn(Record):
    """Accesses to two arrays that share memory: by `source`, and then by `sink`, or an iteration of `carrier` later, if
    given."""

    source: Step
    sink: Step
    carrier: ir.Seq | None
    covered: k.Covered

    def need(self, level: k.Level, copying: Collection[Step]) -> Dependence:
        """The dependence between all threads; with a wait, if `source` starts asynchronous copies, which are `copying`."""
        distance = 0 if self.carrier is None else 1
        landed = self.source in copying
        return Dependence(self.source, self.sink, self.carrier, level, self.covered, distance, landed=landed)

    def meeting(self) -> Dependence:
        """The dependence on the asynchronous copies that `source` starts."""
        return Dependence(self.source, self.sink, self.carrier, None, self.covered, 0 if self.carrier is None else 1)


class Lives(Mutable, dict=True):
    """The live ranges of one team's locals. Arrays of boxes or runs, and of atomics, share memory with no array."""

    needs: Needs
    nest: Nest
    nodes: tuple[Node, ...]
    _live: dict[Buffer, frozenset[int]] = field(default_factory=dict[Buffer, frozenset[int]])
    _bodies: dict[ir.Seq, frozenset[int]] = field(default_factory=dict[ir.Seq, frozenset[int]])

    @cached_property
    def ends(self) -> dict[Buffer, tuple[End, ...]]:
        """The accesses of each buffer, in the order of steps."""
        found: dict[Buffer, list[End]] = {}
        for end in self.needs.ends_of(self.nest, self.nodes):
            found.setdefault(end.access.buffer, []).append(end)
        return {buffer: tuple(sorted(ends, key=lambda end: end.order)) for buffer, ends in found.items()}

    @cached_property
    def around(self) -> dict[Step, Around]:
        """The team's loops around each step."""
        return surroundings(self.nodes)

    @cached_property
    def alone(self) -> frozenset[Buffer]:
        """The buffers that share memory with no other."""
        atomics = atomic_binds(tuple(m.loop for m in self.nest.grid), self.nest.body)
        boxes = {leaf for leaf in leaves(self.nodes) if isinstance(leaf.stmt, ir.Par | ir.Seq) and mark(leaf.stmt, Tensor)}
        return frozenset(
            buffer
            for buffer, ends in self.ends.items()
            if any(end.leaf in boxes or end.access.instance.stmt in atomics for end in ends)
        )

    def disjoint(self, one: Buffer, other: Buffer) -> bool:
        """Whether the live ranges of the two are disjoint."""
        return not {one, other} & self.alone and self.steps(one).isdisjoint(self.steps(other))

    def steps(self, buffer: Buffer) -> frozenset[int]:
        """The live range of `buffer`: the numbers of steps, in textual order."""
        if buffer not in self._live:
            ends = self.ends.get(buffer, ())
            live = {end.order for end in ends}
            looped = any(self.around[end.leaf].loops for end in ends)
            for write, read in _far_first(ends):  # distant pairs cover most steps
                if not looped and live.issuperset(range(ends[0].order, ends[-1].order + 1)):
                    break  # all steps are in the live range
                for flow, steps in self._flows(write, read):
                    if not live.issuperset(steps) and flow.happens():
                        live.update(steps)
            self._live[buffer] = frozenset(live)
        return self._live[buffer]

    def span(self, buffer: Buffer) -> tuple[int, int] | None:
        """The lines of the first and the last step in the live range of `buffer`."""
        lines = [leaf.stmt.span.line for at, leaf in enumerate(leaves(self.nodes)) if at in self.steps(buffer)]
        return (min(lines), max(lines)) if lines else None

    def _flows(self, write: End, read: End) -> Iterator[tuple[Conflict, Collection[int]]]:
        """The possible flows of a value from a write to a read, in one iteration or carried by a loop, with the steps in
        between."""
        outer, inner = self.around[write.leaf].loops, self.around[read.leaf].loops
        common = tuple(a for a, b in zip(outer, inner, strict=False) if a is b)
        fresh = self.needs.model.scope_syms(write.access.buffer)
        here = Conflict(self.needs.model, self.nest, write, read, common)
        if write.order <= read.order:
            alone = (*outer[len(common) :], *inner[len(common) :])
            yield here, {*range(write.order, read.order + 1), *(step for loop in alone for step in self._body(loop))}
        for carrier in common:
            if carrier.sym not in fresh:
                yield here.carried(carrier), self._body(carrier)

    def _body(self, loop: ir.Seq) -> Collection[int]:
        if loop not in self._bodies:
            steps = enumerate(leaves(self.nodes))
            self._bodies[loop] = frozenset(at for at, leaf in steps if loop in self.around[leaf].loops)
        return self._bodies[loop]

    def turns(self, one: Buffer, other: Buffer) -> Iterator[Turn]:
        """The pairs of accesses to be ordered if the two arrays share memory."""
        seen: set[tuple[Step, Step, ir.Seq | None]] = set()
        for first, second in ((one, other), (other, one)):
            for source in self.ends.get(first, ()):
                for sink in self.ends.get(second, ()):
                    if not (source.access.writes or sink.access.writes):
                        continue
                    for carrier in self._carriers(source, sink):
                        if (source.leaf, sink.leaf, carrier) not in seen:
                            seen.add((source.leaf, sink.leaf, carrier))
                            yield Turn(source.leaf, sink.leaf, carrier, _covered(source, sink, carrier))

    def _carriers(self, source: End, sink: End) -> Iterator[ir.Seq | None]:
        first, second = self.around[source.leaf], self.around[sink.leaf]
        if source.order < sink.order and not first.excludes(second):
            yield None
        loops = zip(first.loops, second.loops, strict=False)
        yield from (a for a, b in loops if a is b)

    @property
    def level(self) -> k.Level:
        """The level of the barrier for all threads of the team."""
        return k.Level.WARP if self.nest.team <= self.nest.warp else k.Level.BLOCK


def _far_first(ends: Sequence[End]) -> Iterator[tuple[End, End]]:
    """Pairs of a write and a read of the ordered `ends`, by decreasing distance of the read after the write."""
    writes, reads = [end for end in ends if end.access.writes], [end for end in reversed(ends) if end.access.reads]
    waiting = [(write.order - read.order, number, 0) for number, write in enumerate(writes) for read in reads[:1]]
    heapify(waiting)
    while waiting:
        _, number, at = heappop(waiting)
        yield writes[number], reads[at]
        if at + 1 < len(reads):
            heappush(waiting, (writes[number].order - reads[at + 1].order, number, at + 1))


def _covered(source: End, sink: End, carrier: ir.Seq | None) -> k.Covered:
    kind = "WAW" if source.access.writes and sink.access.writes and not sink.access.reads else "WAR"
    first, second = source.access, sink.access
    names = f"{first.buffer.name}, where {second.buffer.name} lies"
    return k.Covered(kind, names, first.instance.stmt.span, second.instance.stmt.span, None if carrier is None else carrier.sym)
