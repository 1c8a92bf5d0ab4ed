"""Asynchronous copies by threads: the steps that start them, and the placement of waits.

A step whose loop is marked `#async` starts copies from global to shared memory and commits them as one group. Before any thread
accesses the targets, or writes the sources, the threads that started the copies wait, and then reach a barrier. A wait allows a
number of later groups to be in flight:

    copy As; commit; copy Bs; commit      (for the next iteration but one)
    wait 2                                all but the latest two groups are complete
    barrier                               … and visible to all threads

A branch that only copies is one group, which is empty if it is not taken; so a wait counts it in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from texpr.affine.expr import expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.ops.copies import COPY_BYTES
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Async, Vector
from texpr.ir.steps import Branch, Loop, Node, Step, below, leaves
from texpr.ir.steps.place import Place
from texpr.ir.steps.work import Spread
from texpr.ir.value import Buffer
from texpr.isa.cuda import ASYNC_COPY
from texpr.isa.target import Target
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.lowering.build.trips import Trips
from texpr.lowering.cover import cover
from texpr.lowering.dependences.dependence import Dependence, reach
from texpr.lowering.engine.copies import is_copy
from texpr.lowering.sync.barriers import Barriers
from texpr.mapping.bands import band
from texpr.presburger.formula import Or
from texpr.relation.conditions import condition
from texpr.relation.facts import facts_of
from texpr.schedule.edits import staged_by
from texpr.support.diagnostic import error
from texpr.support.record import Mutable, Record


def copying_leaves(nodes: tuple[Node, ...], places: Mapping[Buffer, Place], target: Target) -> frozenset[Step]:
    """The steps that start asynchronous copies. Raises TexprError E0911 for accesses of 1, 2 or more than 16 bytes.

    A marked step whose target is not shared memory, or on a target machine without such copies, is an ordinary copy.
    """
    return frozenset(leaf for leaf in leaves(nodes) if _starts_copies(leaf, places, target))


def _starts_copies(leaf: Step, places: Mapping[Buffer, Place], target: Target) -> bool:
    if not isinstance(leaf.work, Spread) or not isinstance(leaf.stmt, ir.Par) or ASYNC_COPY not in target.features:
        return False
    asked = next((found for par in band(leaf.stmt)[0] if (found := mark(par, Async))), None)
    if asked is None:
        return False
    copies = tuple(_copies((leaf.stmt,), places, 1))
    for bind, width in copies:
        size = width * bind.targets[0].dtype.bytes
        if size not in COPY_BYTES:
            into = bind.targets[0].buffer.name
            reason = f"an asynchronous copy moves 4, 8 or 16 bytes, and this one would move {size} at once into `{into}`"
            help = "a copy is wider if its innermost loop is vectorized" if size < COPY_BYTES[0] else None
            raise error("E0911", asked.span, reason, help=help, offers=staged_by(asked.span, "ld"))
    return bool(copies)


def _copies(body: tuple[ir.Stmt, ...], places: Mapping[Buffer, Place], width: int) -> Iterator[tuple[ir.Bind, int]]:
    """The binds that can be asynchronous copies, with the number of elements of an access."""
    for stmt in body:
        if isinstance(stmt, ir.Bind) and is_copy(stmt, places):
            yield stmt, width
        inner = stmt.extent.constant if isinstance(stmt, ir.Par | ir.Seq) and mark(stmt, Vector) else width
        for block in ir.blocks(stmt):
            yield from _copies(block, places, inner)


def committing(nodes: tuple[Node, ...], copying: Collection[Step]) -> frozenset[Node]:
    """The nodes after which a group is committed: a step that copies, or a branch of such steps alone."""
    found: set[Node] = set()
    for steps in lists(nodes):
        found |= {node for node in steps.nodes if _commits(node, copying)}
    inside = {leaf for node in found if isinstance(node, Branch) for leaf in node.then}
    return frozenset(found - inside)


def _commits(node: Node, copying: Collection[Step]) -> bool:
    if isinstance(node, Branch):
        return bool(node.then) and not node.orelse and all(isinstance(n, Step) and n in copying for n in node.then)
    return isinstance(node, Step) and node in copying


class Wait(Record):
    """A wait: the number of groups that may be in flight, and the dependences that it covers."""

    pending: int
    meetings: tuple[Dependence, ...] = ()

    @property
    def covers(self) -> tuple[k.Covered, ...]:
        """The dependences that it is there for."""
        return tuple(dict.fromkeys(meeting.covered for meeting in self.meetings))

    def statement(self) -> k.Stmt:
        """The operation in the kernel."""
        return k.WaitAsync(self.pending, self.covers)


class _Passed(Record):
    """A program point on the path from a copy to a dependent access, with the number of groups committed on the way."""

    gap: ProgramPoint
    groups: int

    def has(self, wait: _Passed) -> bool:
        """Whether the copy is complete here after `wait`, which allows so many groups in flight."""
        return wait.gap == self.gap and wait.groups <= self.groups


def place_waits(
    nodes: tuple[Node, ...],
    meetings: Iterable[Dependence],
    commits: frozenset[Node],
    placed: Barriers,
    closers: Mapping[Step, Node] | None = None,
    is_own: Callable[[Dependence], bool] = lambda _: False,
) -> dict[ProgramPoint, Wait]:
    """The waits by program point, each before the barrier there; point −1 is the start of a list. `commits`: see `committing`.

    `closers`: behind which node the group of a step is closed, where that is not the node that it lies in. `is_own`: whether a
    thread meets what it started itself, so that no barrier has to follow.

    For one copy alone the latest place is best: most others go on meanwhile. Of the places that are best for some copy those
    are taken that do for all and cost least.
    """
    ways, trips = _Ways(nodes, commits, placed, closers or {}, is_own), Trips.of(nodes)
    asked = {meeting: ways.fit(meeting) for meeting in sorted(meetings, key=ways.rank)}
    at_end = _Passed((0, len(nodes) - 1), 0)
    number = {gap: at for at, gap in enumerate(trips.gaps)}
    offered = sorted({*(best for _, best in asked.values()), at_end}, key=lambda each: (number[each.gap], each.groups))
    every = (*(fit for fit, _ in asked.values()), *((*fit, at_end) for fit in ways.left_over()))
    sets = [frozenset(n for n, wait in enumerate(offered) if any(each.has(wait) for each in fit)) for fit in every]
    once = len(offered) + 1
    chosen = [offered[n] for n in cover(sets, [trips.cost(wait.gap, 1) * once + 1 for wait in offered]).chosen] if sets else []
    covers: dict[_Passed, list[Dependence]] = {wait: [] for wait in chosen}
    for meeting, (fit, _) in asked.items():
        first = next(wait for each in fit for wait in chosen if each.has(wait))
        covers[first].append(meeting)
    return {wait.gap: Wait(wait.groups, tuple(found)) for wait, found in covers.items()}


class _Ways(Mutable):
    """The possible points of waits for copies, given the barriers `placed`."""

    nodes: tuple[Node, ...]
    commits: frozenset[Node]
    placed: Barriers
    closers: Mapping[Step, Node]
    is_own: Callable[[Dependence], bool]

    def rank(self, meeting: Dependence) -> tuple[bool, bool, int]:
        """The order in which waits list the dependences that they cover."""
        _, nodes = self._common(meeting)
        inside = lists((nodes[_index(nodes, meeting.sink)],))
        enters = meeting.carrier is None and any(node in self.commits for steps in inside[1:] for node in steps.nodes)
        return enters, meeting.carrier is not None, meeting.distance

    def fit(self, meeting: Dependence) -> tuple[tuple[_Passed, ...], _Passed]:
        """The points at which a wait is sufficient for a dependence, in the order of the path; and the best of them.

        The best is the latest with a barrier for all; or, without one, the last before any possible dependent access.
        """
        steps = self._way(meeting)
        if self.is_own(meeting):
            return (*steps, *self._entering(meeting, steps[-1].groups)), steps[-1]
        met = [step for step in steps if self._is_met(step.gap)]
        following = (step for step, after in pairwise(steps) if step.gap in self.placed or self._meets_inside(after.gap))
        best = met[-1] if met else next(following, steps[-1])
        entering = (step for step in self._entering(meeting, steps[-1].groups) if self._is_met(step.gap))
        return (*steps[: steps.index(best) + 1], *entering), best

    def left_over(self) -> Iterator[tuple[_Passed, ...]]:
        """For each group the points after it: no copy may be in flight when the kernel ends."""
        yield from self._behind(self.nodes, ())

    def _behind(self, nodes: tuple[Node, ...], outer: tuple[_Passed, ...]) -> Iterator[tuple[_Passed, ...]]:
        """The same for groups in `nodes`. `outer`: the points after that list, with the number of groups in between."""
        number = next(steps.number for steps in lists(self.nodes) if steps.nodes is nodes)
        for at, node in enumerate(nodes):
            own = (_Passed((number, gap), self._groups(nodes, at + 1, gap + 1)) for gap in range(at, len(nodes)))
            rest = self._groups(nodes, at + 1, len(nodes))
            behind = (*own, *(_Passed(each.gap, each.groups + rest) for each in outer))
            if node in self.commits:
                yield behind
            else:
                for inner in below(node):
                    yield from self._behind(inner, behind)

    def _is_met(self, gap: ProgramPoint) -> bool:
        """Whether a barrier of the widest scope follows a wait there."""
        barrier = self.placed.get(gap)
        most = max((reach((each.level, each.part)) for each in self.placed.values()), default=None)
        return barrier is not None and (barrier.whole or reach((barrier.level, barrier.part)) == most)

    def _way(self, meeting: Dependence) -> list[_Passed]:
        """The points from the copy to the dependent access, in order, in the list that contains both."""
        number, nodes = self._common(meeting)
        start, end = self._closed(nodes, meeting.source), _index(nodes, meeting.sink)
        if meeting.carrier is None:
            gaps = range(start, end)
            return [_Passed((number, gap), self._groups(nodes, start + 1, gap + 1)) for gap in gaps]
        again = nodes[start] if self._commits_again(nodes[start], meeting) else None
        turn, rest = self._groups(nodes, 0, len(nodes), again), self._groups(nodes, start + 1, len(nodes))
        turns = (meeting.distance - 1) * turn
        before = range(end, start) if meeting.distance > 1 else range(0)  # of the iteration before the last
        full = [_Passed((number, gap), turns - turn + rest + self._groups(nodes, 0, gap + 1, again)) for gap in before]
        tail = [_Passed((number, gap), turns + self._groups(nodes, start + 1, gap + 1)) for gap in range(start, len(nodes))]
        head = [_Passed((number, gap), turns + rest + self._groups(nodes, 0, gap + 1, again)) for gap in range(-1, end)]
        return [*full, *tail, *head]

    def _commits_again(self, node: Node, meeting: Dependence) -> bool:
        """Whether a branch closes the group of a source, and so does it in each later iteration: none of its tests, that an
        index is not less than something, fails again."""
        if not isinstance(node, Branch) or node.is_data or meeting.carrier is None:
            return False
        found, turn = condition(node.stmt.condition), expr(meeting.carrier.sym)
        if not found.exact or isinstance(found.formula, Or) or not any(inner in self.commits for inner in node.then):
            return False
        steps = (fact.substitute({meeting.carrier.sym: turn + 1}) - fact for fact in facts_of((found.formula,)))
        return _holds(node.then, meeting.source) and all(step.is_constant and step.constant >= 0 for step in steps)

    def _entering(self, meeting: Dependence, groups: int) -> Iterator[_Passed]:
        """The points before the dependent access in lists within the one that contains both: passed each time, after `groups`.

        Points in a data-dependent branch are excluded: a wait there covers no later access, so one before the branch serves
        all.
        """
        _, nodes = self._common(meeting)
        numbers = {id(steps.nodes): steps.number for steps in lists(self.nodes)}
        while (node := nodes[_index(nodes, meeting.sink)]) is not meeting.sink:
            if isinstance(node, Branch) and node.is_data:
                return
            nodes = next(inner for inner in below(node) if _holds(inner, meeting.sink))
            if isinstance(node, Loop) and node.stmt is meeting.within:
                groups += self._groups(nodes, 0, len(nodes))
            for gap in range(-1, _index(nodes, meeting.sink)):
                yield _Passed((numbers[id(nodes)], gap), groups + self._groups(nodes, 0, gap + 1))
            groups += self._groups(nodes, 0, _index(nodes, meeting.sink))

    def _closed(self, nodes: tuple[Node, ...], leaf: Step) -> int:
        """The node of a list at which, or in which, the group of a step is closed."""
        closer = self.closers.get(leaf)
        found = (at for at, node in enumerate(nodes) if closer is node or (closer is not None and _has(node, closer)))
        return next(found, _index(nodes, leaf))

    def _common(self, meeting: Dependence) -> tuple[int, tuple[Node, ...]]:
        """The list of steps whose order matters: the carrier's body, or the innermost that contains both ends."""
        every = lists(self.nodes)
        if meeting.carrier is not None:
            return next((steps.number, steps.nodes) for steps in every if steps.loop is meeting.carrier)
        both = [s for s in every if _holds(s.nodes, meeting.source) and _holds(s.nodes, meeting.sink)]
        return both[-1].number, both[-1].nodes

    def _meets_inside(self, gap: ProgramPoint) -> bool:
        """Whether the node before `gap` contains a barrier."""
        every = lists(self.nodes)
        number, at = gap
        if at < 0:
            return False
        inside = {s.number for s in every if any(_is_within(node, s.nodes) for node in every[number].nodes[at : at + 1])}
        return any(where in inside for where, _ in self.placed)

    def _groups(self, nodes: tuple[Node, ...], first: int, last: int, again: Node | None = None) -> int:
        """The number of groups that the nodes first … last − 1 always commit; those of loops and other branches than `again`
        are not counted."""
        return sum(node in self.commits or node is again for node in nodes[first:last])


def _index(nodes: tuple[Node, ...], leaf: Step) -> int:
    return next(at for at, node in enumerate(nodes) if _holds((node,), leaf))


def _holds(nodes: tuple[Node, ...], leaf: Step) -> bool:
    return any(found is leaf for found in leaves(nodes))


def _has(node: Node, wanted: Node) -> bool:
    return any(inner is wanted or _has(inner, wanted) for block in below(node) for inner in block)


def _is_within(node: Node, nodes: tuple[Node, ...]) -> bool:
    """Whether the list `nodes` is nested in `node`."""
    return any(block is nodes or any(_is_within(inner, nodes) for inner in block) for block in below(node))
