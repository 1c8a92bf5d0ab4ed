"""Where threads fence off what they did to an element of shared memory from the copy that fills it next.

    … = As[(ko + 1) % 4, …]      fence; barrier;      if (thread == 0) { copy As[ko % 4] = … }

Threads reach shared memory through the generic proxy, the engine that copies tiles through the async one. A barrier orders
what threads do through one proxy; that a copy writes only after them takes a fence in each thread behind its own access and
ahead of the barrier that lets the copy start. So each way from an access to a copy holds a fence: before a barrier of the way,
or, where one thread does both, before the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.lowering.build.paths import Path, Paths, ProgramPoint, lists
from texpr.lowering.build.team import Node, Step, Team, surroundings
from texpr.lowering.dependences.conflict import Conflict, apart, landing
from texpr.lowering.dependences.dependence import reach
from texpr.lowering.dependences.needs import Needs
from texpr.mapping.nest import Nest
from texpr.support.record import Record


class Refill(Record):
    """A copy `sink` writes what threads touch in `source`; with a `carrier`, in a later iteration of it, `distant`: not in the
    next one."""

    source: Step
    sink: Step
    carrier: ir.Seq | None = None
    distant: bool = False


def refills(needs: Needs, nest: Nest, team: Team, loads: Collection[Step], engine: Collection[Step]) -> Iterator[Refill]:
    """What threads touch before one of `loads` fills it, in any threads. `engine`: the steps that no thread does itself."""
    around = surroundings(team.nodes)
    ends = tuple(needs.ends_of(nest, team)) if loads else ()
    filled = [landing(end, needs.model, nest) for end in ends if end.leaf in loads and end.access.writes]
    found = dict[Refill, None]()
    for sink in filled:
        for source in (end for end in ends if end.access.buffer is sink.access.buffer and end.leaf not in engine):
            loops = zip(around[source.leaf].loops, around[sink.leaf].loops, strict=False)
            common = tuple(a for a, b in loops if a is b)
            here = Conflict(needs.model, nest, source, sink, common)
            if source.order < sink.order and here.happens():
                found[Refill(source.leaf, sink.leaf)] = None
            for carrier in common:
                carried = here.carried(carrier)
                if carried.happens(apart("==", carrier, 1)):
                    found[Refill(source.leaf, sink.leaf, carrier)] = None
                elif carried.happens():
                    found[Refill(source.leaf, sink.leaf, carrier, distant=True)] = None
    yield from found


def fenced(
    nodes: tuple[Node, ...],
    every: Iterable[Refill],
    placed: Mapping[ProgramPoint, k.Barrier],
    standing: Collection[ProgramPoint],
    runs: Callable[[ir.Seq], bool],
) -> dict[ProgramPoint, Refill]:
    """The gaps at which all threads pass one more fence, ahead of the barrier that may stand there, each with what asks for it.

    `standing`: the gaps that have a fence for another reason.
    """
    ways, found = Paths(nodes, runs), dict[ProgramPoint, Refill]()
    before = {node: (steps.number, at - 1) for steps in lists(nodes) for at, node in enumerate(steps.nodes)}
    for each in every:
        for way in _ways(each, ways):
            if found.keys().isdisjoint(way) and way.isdisjoint(standing):
                found[_best(way, placed) or before[each.sink]] = each
    return found


def _ways(each: Refill, ways: Paths) -> tuple[Path, ...]:
    if each.carrier is None:
        return ways.within(each.source, each.sink)
    return ways.carried(each.source, each.sink, each.carrier, each.distant)


def _best(way: Path, placed: Mapping[ProgramPoint, k.Barrier]) -> ProgramPoint | None:
    """Of the barriers of a way one at which most threads meet, the last in the text: others are then seldom needed."""
    barriers = [(reach((b.level, b.part)), gap) for gap, b in placed.items() if gap in way]
    return max(barriers)[1] if barriers else None
