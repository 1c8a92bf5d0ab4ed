"""The paths between two steps of a tree, each as the set of program points that it passes, where a barrier may be placed.

Point `g` of a list of n steps is after step g; point −1 is the start, n − 1 the end (of the loop body, if the list is one).
A path takes one arm of each branch. It passes once through a loop that is known to have iterations; other loops also have a
path past them. A path whose points include all those of another one is redundant: the other one represents both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from texpr.ir import program as ir
from texpr.ir.steps import Branch, Loop, Node, Part, Step, below
from texpr.support.record import Mutable, Record, field

ProgramPoint: TypeAlias = tuple[int, int]
"""A program point: a list of steps (its number in the order of `lists`) and a position in it."""

Path: TypeAlias = frozenset[ProgramPoint]

MANY = 64
"""The greatest number of paths that are distinguished. Beyond it, the points common to all represent them: that is
conservative."""


class StepList(Record):
    """A list of steps. `loop`: the loop whose body it is, if any."""

    number: int
    nodes: tuple[Node, ...]
    loop: ir.Seq | None

    @property
    def gaps(self) -> tuple[ProgramPoint, ...]:
        """Its program points, in order. An empty list has none."""
        return self.between(-1, len(self.nodes)) if self.nodes else ()

    def between(self, first: int, last: int) -> tuple[ProgramPoint, ...]:
        """The points first … last − 1."""
        return tuple((self.number, at) for at in range(first, last))


def lists(nodes: tuple[Node, ...]) -> tuple[StepList, ...]:
    """Every list of steps of a tree, outer before inner."""
    found: list[StepList] = []

    def visit(nodes: tuple[Node, ...], loop: ir.Seq | None) -> None:
        found.append(StepList(len(found), nodes, loop))
        for node in nodes:
            match node:
                case Step():
                    pass
                case Loop():
                    visit(node.body, node.stmt)
                case Branch() | Part():
                    for inner in below(node):
                        visit(inner, None)

    visit(nodes, None)
    return tuple(found)


_Stop: TypeAlias = tuple[StepList, int]
"""A step: the list that contains it, and its number there."""


class Paths(Mutable):
    """The paths of one tree. `runs`: whether a loop is known to have iterations wherever it is reached.

    `coarse`: whether the limit on paths made a result conservative.
    """

    nodes: tuple[Node, ...]
    runs: Callable[[ir.Seq], bool]
    coarse: bool = False
    _lists: dict[int, StepList] = field(init=False)
    _stops: dict[Step, tuple[_Stop, ...]] = field(default_factory=dict[Step, "tuple[_Stop, ...]"])
    _through: dict[int, tuple[Path, ...]] = field(default_factory=dict[int, "tuple[Path, ...]"])

    def __post_init__(self) -> None:
        self._lists = {id(steps.nodes): steps for steps in lists(self.nodes)}
        self._visit(self.nodes, ())

    def _visit(self, nodes: tuple[Node, ...], outer: tuple[_Stop, ...]) -> None:
        for at, node in enumerate(nodes):
            here = (*outer, (self._lists[id(nodes)], at))
            if isinstance(node, Step):
                self._stops[node] = here
            for inner in below(node):
                self._visit(inner, here)

    def within(self, source: Step, sink: Step, around: ir.Seq | None = None, landed: bool = False) -> tuple[Path, ...]:
        """The paths from `source` to `sink`, later in the text, in one iteration of the common loops; none from one arm of a
        branch to the other. `around`: a loop around one of them alone, which executes a further iteration in between. `landed`:
        a path begins where the innermost list with both ends continues after `source`."""
        outer, inner = self._stops[source], self._stops[sink]
        depth = next((d for d, (a, b) in enumerate(zip(outer, inner, strict=False)) if a != b), 0)
        (steps, first), (other, second) = outer[depth], inner[depth]
        if steps is not other or first >= second:
            return ()
        left = () if landed else outer[depth + 1 :]
        passed = {each.loop for each, _ in (*left, *inner[depth + 1 :])}
        again = self._turn(around) if around is not None and around in passed else _NOTHING
        over = (self._pass(steps.nodes[first + 1 : second]), (frozenset(steps.between(first, second)),))
        return self._all((*self._after(left), *self._before(inner[depth + 1 :]), *over, again))

    def carried(
        self, source: Step, sink: Step, carrier: ir.Seq, distant: bool = False, landed: bool = False, waited: bool = False
    ) -> tuple[Path, ...]:
        """The paths from `source` to `sink` in the next iteration of `carrier`; if `distant`, in the one after that.

        `landed`, `waited`: a path begins after the node of the body of `carrier`, or of the innermost list with both ends, that
        contains `source`, since a thread that passes this node need not execute `source`.
        """
        ends = [[stop for stop in self._stops[leaf]] for leaf in (source, sink)]
        outer, inner = (stops[_level(stops, carrier) :] for stops in ends)
        common = sum(1 for (steps, _), (other, _) in zip(outer, inner, strict=False) if steps is other)
        left = outer[:1] if landed else outer[:common] if waited else outer
        again = self._turn(carrier) if distant else _NOTHING
        return self._all((*self._after(left), *self._before(inner), again))

    def _after(self, stops: Iterable[_Stop]) -> Iterator[tuple[Path, ...]]:
        """The paths from a step to the ends of its lists."""
        for steps, at in stops:
            yield (frozenset(steps.between(at, len(steps.nodes))),)
            yield self._pass(steps.nodes[at + 1 :])

    def _before(self, stops: Iterable[_Stop]) -> Iterator[tuple[Path, ...]]:
        """The paths from the starts of its lists to a step."""
        for steps, at in stops:
            yield (frozenset(steps.between(-1, at)),)
            yield self._pass(steps.nodes[:at])

    def _turn(self, loop: ir.Seq) -> tuple[Path, ...]:
        return self._list(next(steps for steps in self._lists.values() if steps.loop is loop))

    def _list(self, steps: StepList) -> tuple[Path, ...]:
        if steps.number not in self._through:
            self._through[steps.number] = self._all(((frozenset(steps.gaps),), self._pass(steps.nodes)))
        return self._through[steps.number]

    def _pass(self, nodes: Sequence[Node]) -> tuple[Path, ...]:
        """The paths through some steps, without the points between them."""
        return self._all(self._node(node) for node in nodes if not isinstance(node, Step))

    def _node(self, node: Node) -> tuple[Path, ...]:
        match node:
            case Step():
                return _NOTHING
            case Loop():
                return self._list(self._lists[id(node.body)]) if self.runs(node.stmt) else _NOTHING
            case Branch() | Part():
                return self._few(way for side in below(node) for way in self._list(self._lists[id(side)]))

    def _all(self, parts: Iterable[tuple[Path, ...]]) -> tuple[Path, ...]:
        """The concatenations of a path of each of `parts`."""
        found = _NOTHING
        for part in parts:
            found = self._few(one | other for one in found for other in part)
        return found

    def _few(self, ways: Iterable[Path]) -> tuple[Path, ...]:
        every, kept = dict.fromkeys(ways), list[Path]()
        for way in sorted(every, key=len):
            if not any(less <= way for less in kept):
                kept.append(way)
            if len(kept) > MANY:
                self.coarse = True
                first, *rest = every
                return (first.intersection(*rest),)
        return tuple(kept)


_NOTHING: tuple[Path, ...] = (frozenset(),)


def _level(stops: Sequence[_Stop], carrier: ir.Seq) -> int:
    return next(depth for depth, (steps, _) in enumerate(stops) if steps.loop is carrier)
