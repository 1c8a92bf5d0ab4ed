"""Proxy fences between threads' accesses to an element of shared memory and a later copy by an engine.

    … = As[(ko + 1) % 4, …]      fence; barrier;      if (thread == 0) { copy As[ko % 4] = … }

Threads access shared memory through the generic proxy, the engine that copies tiles through the async one (PTX ISA, "Proxies").
A barrier orders accesses through one proxy; the order before a copy needs a fence in each thread, after its own access and
before the barrier that precedes the copy. So each path from an access to a copy contains a fence: before a barrier of the path,
or, if one thread does both, before the copy. Of all such choices one of least cost is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from texpr.ir import program as ir
from texpr.ir.steps import Node, Step
from texpr.ir.value import Buffer
from texpr.lowering.build.paths import Path, Paths, ProgramPoint, lists
from texpr.lowering.build.team import surroundings
from texpr.lowering.build.trips import Trips
from texpr.lowering.cover import cover
from texpr.lowering.dependences.conflict import Conflict, apart, landing
from texpr.lowering.dependences.dependence import Dependence, reach
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.engine.box_copy import BoxCopy
from texpr.lowering.sync.barriers import Barriers
from texpr.mapping.nest import Nest


def across_proxies(
    needs: Needs, nest: Nest, nodes: tuple[Node, ...], engine: Mapping[Step, BoxCopy], read: Mapping[Step, frozenset[Buffer]]
) -> Iterator[Dependence]:
    """What threads do to a tile before a copy of `engine` fills it, or reads what they wrote; in any threads.

    `read`: what of shared memory a tensor core reads, by the step that starts it.
    """
    around = surroundings(nodes)
    ends = tuple(needs.ends_of(nest, nodes)) if engine or read else ()
    seen = set[tuple[Step, Step, ir.Seq | None, int]]()
    for sink in ends:
        copy, buffer = engine.get(sink.leaf), sink.access.buffer
        if buffer not in read.get(sink.leaf, ()) and (copy is None or buffer is not copy.tile.buffer):
            continue
        reads = copy is None or copy.stores
        moved = sink if reads else landing(sink, needs.model, nest)
        for source in (end for end in ends if end.access.buffer is buffer and end.leaf not in engine):
            if reads and not source.access.writes:
                continue
            if not reads and source.leaf in read:
                continue  # both are of the async proxy
            loops = zip(around[source.leaf].loops, around[sink.leaf].loops, strict=False)
            for found in _each(Conflict(needs.model, nest, source, moved, tuple(a for a, b in loops if a is b))):
                key = found.source, found.sink, found.carrier, found.distance
                if key not in seen:
                    seen.add(key)
                    yield found


def _each(here: Conflict) -> Iterator[Dependence]:
    source, sink = here.source, here.sink
    if source.order < sink.order and here.happens():
        yield Dependence(source.leaf, sink.leaf, None, None, here.covered)
    for carrier in here.common:
        carried = here.carried(carrier)
        near = carried.happens(apart("==", carrier, 1))
        if near or carried.happens():
            yield Dependence(source.leaf, sink.leaf, carrier, None, carried.covered, 1 if near else 2)


def fenced(
    nodes: tuple[Node, ...],
    every: Iterable[Dependence],
    placed: Barriers,
    runs: Callable[[ir.Seq], bool],
) -> dict[ProgramPoint, Dependence]:
    """The program points where all threads execute a fence, before the barrier there, each with a dependence that needs it."""
    paths, trips = Paths(nodes, runs), Trips.of(nodes)
    number = {gap: at for at, gap in enumerate(trips.gaps)}
    before = {node: (steps.number, at - 1) for steps in lists(nodes) for at, node in enumerate(steps.nodes)}
    asked = [(each, _fit(path, placed) or (before[each.sink],)) for each in every for path in each.paths(paths)]
    sets = [frozenset(number[gap] for gap in gaps) for _, gaps in asked]
    once = len(trips.gaps) + 1
    found = cover(sets, [trips.cost(gap, 1) * once + 1 for gap in trips.gaps]).chosen if sets else ()
    return {trips.gaps[at]: next(each for each, gaps in asked if trips.gaps[at] in gaps) for at in found}


def _fit(path: Path, placed: Barriers) -> tuple[ProgramPoint, ...]:
    """The barriers of a path with the widest scope."""
    barriers = {gap: reach((b.level, b.part)) for gap, b in placed.items() if gap in path}
    most = max(barriers.values(), default=None)
    return tuple(gap for gap, each in barriers.items() if each == most)
