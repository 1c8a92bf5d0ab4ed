"""Locals in registers of lanes: one thread writes an element, and threads of its warp read it by shuffles.

Conditions, from the relation: every write of an element is by its owner; every read is in the owner's warp; the slot of each
access is the same in all lanes once loops are unrolled; all lanes of a warp reach each shuffle, equally often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.kernel.point import Point
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Async, Tensor, Vector
from texpr.ir.steps import Node
from texpr.ir.steps.digits import turns
from texpr.ir.steps.place import RegisterLayout
from texpr.ir.steps.work import Decide, Partial, Run, Spread, Total
from texpr.ir.value import Buffer
from texpr.isa.memories import LANES
from texpr.lowering.build.trips import OPEN
from texpr.lowering.build.unrolling import MOST_UNROLLED, unrolling
from texpr.lowering.dependences.conflict import End
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.place.owners import (
    THREAD,
    WAYS,
    Frame,
    Lanes,
    Price,
    RegisterRef,
    Unfit,
    by_first,
    by_thread,
    dealt,
    register_of,
)
from texpr.mapping.cost.access import rounds
from texpr.mapping.nest import LoopMap, Nest, Role
from texpr.presburger.formula import Formula, between, compare, conj, differ, disj
from texpr.presburger.isl.maps import left, right
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import NotAffine
from texpr.presburger.points import Points
from texpr.relation.data import Hidden
from texpr.relation.dependence import meeting_formula
from texpr.support.diagnostic import Note
from texpr.support.record import Mutable, field


class Shuffles(Mutable):
    """Placement in lanes for the locals of one nest. `atomics`: updates that are atomics on memory."""

    needs: Needs
    nest: Nest
    nodes: tuple[Node, ...]
    atomics: frozenset[ir.Bind] = frozenset()
    told: bool = False
    _ends: dict[Buffer, list[End]] = field(default_factory=dict[Buffer, list[End]])

    def lanes(self, buffer: Buffer, told: bool) -> Lanes:
        """The placement of `buffer` in lanes. Raises Unfit; if `told`, with two instances that show why."""
        self.told = told
        if self.nest.blocks > 1:
            raise Unfit("the blocks of a cluster run its loops together")
        if not self._ends:
            for end in self.needs.ends_of(self.nest, self.nodes):
                self._ends.setdefault(end.access.buffer, []).append(end)
        ends = self._ends.get(buffer, [])
        for end in ends:
            self._require_plain(end)
        writes, reads = [e for e in ends if e.access.writes], [e for e in ends if not e.access.writes]
        found = self._dealt(buffer, writes)
        asked = [(end, seen) for end in reads if not (seen := register_of(found, end.access.load.index, self._frame(end))).own]
        for read, _ in asked:
            self._require_together(read)
            for write in writes:
                self._require_meeting(write, read, self.nest.warp, "is read in another warp than that which writes it")
        unrolled = [self._unrolled(end, found) for end in ends]
        return Lanes(found, self._price(found, ends, asked), frozenset[Sym]().union(*unrolled))

    def _require_plain(self, end: End) -> None:
        """Requires that an access is by a statement that a thread executes by itself. Raises Unfit."""
        stmt, span = end.access.instance.stmt, end.access.instance.stmt.span
        if isinstance(end.leaf.work, Total):
            raise Unfit("it is reduced into by many threads", Note("here", span))
        if end.thread is None and end.access.writes:
            raise Unfit("all threads write it", Note("here", span))
        loops = [end.leaf.stmt, *end.access.instance.loops]
        asked = (Vector, Tensor, Async)
        if any(mark(loop, each) for loop in loops if isinstance(loop, ir.Par | ir.Seq) for each in asked):
            raise Unfit("its elements are moved several at once, or while threads go on", Note("here", span))
        if stmt in self.atomics or any(isinstance(each, ir.Instruction) for each in end.access.instance.path):
            raise Unfit("it is touched by other means than a thread's own statements", Note("here", span))
        if end.access.load.data or not all(self._is_of_all(end, each) for each in end.access.hidden):
            raise Unfit("which of its elements is touched depends on data", Note("here", span))

    def _is_of_all(self, end: End, hidden: Hidden) -> bool:
        """Whether a number that data say is one for all lanes, as how many turns a loop has, and tells no element."""
        around = (self.nest.loops.get(loop) for loop in end.access.instance.loops[: hidden.depth] if isinstance(loop, ir.Par))
        shared = hidden.let is not None and hidden.source is not None and all(m is None or m.role is Role.GRID for m in around)
        return shared and not any(hidden.sym in each.syms() for each in end.access.index)

    def _dealt(self, buffer: Buffer, writes: list[End]) -> RegisterLayout:
        """The register layout that every write agrees with. Raises Unfit."""
        if not writes:
            raise Unfit("nothing writes it")
        scope = self.needs.model.scope_syms(buffer)
        shared: dict[ir.Loop, LoopMap] = {loop: m for loop, m in self.nest.loops.items() if m.role is not Role.GRID}
        wrong: End | None = None
        for found in (dealt(end.access, shared, scope) for end in writes):
            if found is None or not self._is_apart(found, buffer):
                continue
            wrong = next((e for e in writes if not register_of(found, e.access.load.index, self._frame(e)).own), None)
            if wrong is None:
                return found
        for one, other in product(writes, writes):
            self._require_meeting(one, other, 1, "is written by several threads")
        span = (wrong or writes[0]).access.instance.stmt.span
        raise Unfit("which thread writes an element is no function of its subscripts that can be seen", Note("here", span))

    def _is_apart(self, found: RegisterLayout, buffer: Buffer) -> bool:
        """Whether no two elements have one slot of one thread."""
        one, other = ({s: rename(s) for s in found.names} for rename in (left, right))
        inside = (between(0, names[s], n) for names in (one, other) for s, n in zip(found.names, buffer.shape, strict=True))
        same = (compare("==", a, b) for a, b in found.same(one, other))
        try:
            return Points(conj((*inside, *same, differ(one.values(), other.values()))), self.needs.model.params).is_empty()
        except (NotAffine, Undecided):
            return False

    def _frame(self, end: End) -> Frame:
        """The frame of facts at an access."""
        team = self.nest.team
        start = by_thread(team) if _is_of_all(end) else by_first()
        for loop in end.access.instance.loops:
            found = self.nest.loops.get(loop) if isinstance(loop, ir.Par) else None
            if isinstance(loop, ir.Par) and found is not None and found.role is not Role.GRID:
                one = loop.extent.is_constant and loop.extent.constant <= found.radix
                start = start.also(loop, found.digits, None if one else turn_of(loop), team)
        return start.where(end.access.instance.facts)

    def _require_together(self, end: End) -> None:
        """Requires that all lanes reach a read, equally often: trip counts of loops around it are uniform. Raises Unfit."""
        own = {m.loop.sym for m in self.nest.loops.values() if m.role is not Role.GRID}
        for loop in end.access.instance.loops:
            if loop.extent.syms() & own:
                reason = f"lanes run the loop over `{loop.sym.base}` around a read of another's element unequally often"
                raise Unfit(reason, Note("the loop", loop.span), Note("the read", end.access.instance.stmt.span))

    def _unrolled(self, end: End, found: RegisterLayout) -> frozenset[Sym]:
        """The loops of the program that the slot of an access depends on, all of which can be unrolled. Raises Unfit."""
        seen, used = register_of(found, end.access.load.index, self._frame(end)), set[Sym]()
        loops = {sym: loop for loop in end.access.instance.loops for sym in (loop.sym, turn_of(loop))}
        note = Note("here", end.access.instance.stmt.span)
        if len(seen.ways) > (1 if seen.own or end.access.writes else WAYS):
            raise Unfit("lanes would touch different registers at a time", note)
        for sym in (sym for way in seen.ways for slot in way for sym in slot.syms()):
            loop = loops.get(sym)
            if loop is None or (loop.sym == sym and loop in self._shared):
                raise Unfit("lanes would touch different registers at a time", note)
            count = turns(loop.extent, self._shared[loop].digits) if loop in self._shared else loop.extent
            if not count.is_constant or count.constant > MOST_UNROLLED or unrolling(loop) not in (None, 0):
                raise Unfit(
                    f"the loop over `{loop.sym.base}`, which says in which register an element is, is not unrolled", note
                )
            used.add(loop.sym)
        return frozenset(used)

    @property
    def _shared(self) -> Mapping[ir.Loop, LoopMap]:
        return {loop: m for loop, m in self.nest.loops.items() if m.role is not Role.GRID}

    def _require_meeting(self, one: End, other: End, width: int, reason: str) -> None:
        """Requires that accesses to one element of one `new` are by threads of one group of `width`. Raises Unfit, with an
        example."""
        if self.nest.team <= width and None not in (one.thread, other.thread):
            return
        if self.nest.team <= self.nest.warp == width:
            return
        facts = self._apart(one, other, width)
        notes = [Note("here", end.access.instance.stmt.span) for end in (one, other)]
        try:
            if Points(facts, self.needs.model.params).is_empty():
                return
            if not self.told:
                raise Unfit(f"an element {reason}")
            point = Set.of((), facts, params=self.needs.model.params).sample()
        except (NotAffine, Undecided):
            raise Unfit(f"that no element {reason} cannot be decided", *notes) from None
        if point is None:
            return
        raise Unfit(f"an element {reason}", *(_note(end, point, name) for end, name in ((one, left), (other, right))))

    def _apart(self, one: End, other: End, width: int) -> Formula:
        meeting = meeting_formula(one.access, other.access, self.needs.model.scope_syms(one.access.buffer))
        groups = [_number(end, name) // width for end, name in ((one, left), (other, right))]
        apart = disj((compare("<", *groups), compare(">", *groups)))
        every = (compare(op, s, n) for s in (left(THREAD), right(THREAD)) for op, n in ((">=", 0), ("<", self.nest.team)))
        return conj((self.needs.model.facts, meeting, apart, *every))

    def _price(self, found: RegisterLayout, ends: list[End], asked: list[tuple[End, RegisterRef]]) -> Price:
        """The cost of one execution of the nest; run-time extents are estimated."""
        words = -(-ends[0].access.buffer.dtype.bytes // LANES.vector)
        shuffles = sum(self._times(end) * len(seen.ways) for end, seen in _alike(asked)) * words
        shared = sum(self._times(end) * self._rounds(end) for end in ends)
        writes = [end for end in ends if end.access.writes]
        others = {end: [write for write in writes if write.leaf is not end.leaf] for end, _ in asked}
        met = {end.leaf: max((self._times(end, write) for write in others[end]), default=0) for end, _ in asked}
        return Price(shuffles, shared, sum(met.values()))

    def _times(self, end: End, other: End | None = None) -> int:
        """How often a warp executes an access, in one iteration of the grid; with `other`, the iterations of the loops around
        both."""
        total = 1
        common = None if other is None else {loop for loop in other.access.instance.loops if isinstance(loop, ir.Seq)}
        grid = {m.loop for m in self.nest.grid}
        for loop in end.access.instance.loops:
            if loop not in grid and (common is None or loop in common):
                count = turns(loop.extent, self._shared[loop].digits) if loop in self._shared else loop.extent
                total *= max(1, count.constant) if count.is_constant else OPEN
        return total

    def _rounds(self, end: End) -> int:
        """The requests to shared memory of the first warp's lanes, with one more for each bank conflict."""
        points: list[Point] = []
        for lane in range(min(self.nest.warp, self.nest.team) if end.thread is None or end.thread is not ZERO else 1):
            index = {turn_of(loop): 0 for loop in end.access.instance.loops} | {THREAD: lane}
            point = dict.fromkeys((s for e in end.access.load.index for s in e.syms()), 0)
            own = self._frame(end).turns
            points.append(point | {sym: e.evaluate(index) for sym, e in own.items()})
        return rounds(end.access.load, points, self.nest.request)


def _is_of_all(end: End) -> bool:
    """Whether all threads of the team execute an access."""
    return end.leaf.threads.is_all and isinstance(end.leaf.work, Spread | Partial | Run | Decide)


def turn_of(loop: ir.Loop) -> Sym:
    """The number of an iteration among those of a distributed loop that one thread executes."""
    return Sym(f"turn of {loop.sym.name}")


def _alike(asked: list[tuple[End, RegisterRef]]) -> Iterator[tuple[End, RegisterRef]]:
    """The first of the reads of one element by one statement."""
    seen: set[tuple[int, tuple[Expr, ...]]] = set()
    for end, way in asked:
        key = id(end.access.instance), end.access.load.index
        if key not in seen:
            seen.add(key)
            yield end, way


def _number(end: End, side: object) -> Expr:
    rename = left if side is left else right
    if end.thread is None:
        return expr(rename(THREAD))
    return end.thread.substitute({s: expr(rename(s)) for s in end.access.instance.syms})


def _note(end: End, point: Mapping[Sym, int], side: object) -> Note:
    """A note on one of two instances, with the indices of its loops."""
    rename = left if side is left else right
    syms = [s for s in end.access.instance.syms if rename(s) in point]
    at = ", ".join(f"{s.base} = {point[rename(s)]}" for s in syms)
    thread = _number(end, side)
    values = {s: point.get(s, 0) for s in thread.syms()}
    element = ", ".join(str(e.substitute({s: point[rename(s)] for s in syms})) for e in end.access.load.index)
    does = "writes" if end.access.writes else "reads"
    told = f"thread {thread.evaluate(values)} {does} `{end.access.buffer.name}[{element}]`{', at ' + at if at else ''}"
    return Note(told, end.access.instance.stmt.span)
