"""Dependences between different threads of a team, from the relation: instance → element, instance → thread.

Two accesses to one element, one of them a write, in instances that a loop or the text orders, need a barrier if they may be by
different threads (`texpr.lowering.dependences.conflict`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations_with_replacement, pairwise, product
from math import prod

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import atomic_binds
from texpr.ir.steps import Branch, Loop, Node, Part, Step, below, leaves
from texpr.ir.steps.digits import Digit
from texpr.ir.steps.place import Place
from texpr.ir.steps.work import Half, Middle, Partial, Spread, Total
from texpr.ir.value import Buffer
from texpr.lowering.build.team import Around, end_of, surroundings, thread_of
from texpr.lowering.dependences.conflict import Conflict, End, apart, landing
from texpr.lowering.dependences.dependence import FAR, Dependence, reach
from texpr.lowering.dependences.implied import Implied
from texpr.mapping.nest import Nest, Role
from texpr.presburger.formula import Formula, compare, equal
from texpr.presburger.isl.maps import left, right
from texpr.relation.facts import in_loop, known
from texpr.relation.model import Access, Model
from texpr.relation.standing import Standing
from texpr.support.record import Mutable, field, replace
from texpr.support.span import NOWHERE


class Needs(Mutable):
    """Queries on the dependences of one function's nests."""

    model: Model
    _atomic: dict[Nest, frozenset[ir.Bind]] = field(default_factory=dict[Nest, frozenset[ir.Bind]])
    _standing: Standing | None = None

    @property
    def standing(self) -> Standing:
        """The position of each statement in the program."""
        if self._standing is None:
            self._standing = Standing(self.model.given, self.model.instances)
        return self._standing

    def around(self, par: ir.Stmt) -> tuple[Expr, ...]:
        """Expressions that are non-negative at the start of `par`."""
        return self.standing.around(par)

    def running(self, nest: Nest, nodes: tuple[Node, ...]) -> frozenset[ir.Seq]:
        """The loops of a team that execute at least one iteration wherever they are reached."""
        grid = (fact for m in nest.grid for fact in in_loop(m.loop.sym, m.loop.extent))
        return frozenset(_running(nodes, (*self.model.given, *grid)))

    def between(
        self,
        nest: Nest,
        nodes: tuple[Node, ...],
        places: Mapping[Buffer, Place],
        loads: Collection[Step] = (),
        copying: Collection[Step] = (),
        crossing: Collection[Step] = (),
    ) -> tuple[Dependence, ...]:
        """Every dependence of `nest` that needs a barrier, those of reductions' scratch memory included.

        `loads`: steps that fill boxes, whose completion threads wait for by phases. `copying`: steps that start asynchronous
        copies; a wait precedes the barrier. `crossing`: steps that also write to other blocks of the cluster.
        """
        around = surroundings(nodes)
        ends: dict[Buffer, list[End]] = {}
        for each in self.ends_of(nest, nodes, crossing):
            end = landing(each, self.model, nest) if each.leaf in loads and each.access.writes else each
            place = places.get(end.access.buffer)
            if place is None or place.space not in (k.Space.LOCAL, k.Space.LANES):
                ends.setdefault(end.access.buffer, []).append(end)
        found = [need for same in ends.values() for need in self._pairs(same, nest, around, loads, copying)]
        landed = (replace(need, landed=need.source in copying) for need in found)
        return (*landed, *_scratch_needs(nodes, nest, around), *_reach_needs(ends, nodes, places))

    def meetings(
        self, nest: Nest, nodes: tuple[Node, ...], sources: Collection[Step], lent: Collection[tuple[Step, Buffer]] = ()
    ) -> Iterator[Dependence]:
        """The later accesses to the elements of `sources`, whose effects are asynchronous: of what these write, and writes of
        what they read; of what is `lent` to them, also reads by others."""
        around = surroundings(nodes)
        ends = tuple(self.ends_of(nest, nodes))
        for source, sink in product((end for end in ends if end.leaf in sources), ends):
            one, other = source.access, sink.access
            kept = (source.leaf, one.buffer) in lent and sink.leaf not in sources
            if one.buffer is not other.buffer or not (one.writes or other.writes or kept):
                continue
            inner = around[sink.leaf].loops
            common = tuple(a for a, b in zip(around[source.leaf].loops, inner, strict=False) if a is b)
            here = Conflict(self.model, nest, source, sink, common)
            if source.order < sink.order and here.happens():
                late = (loop for loop, first in _edges(one, (), inner[len(common) :]) if not here.happens(first))
                yield Dependence(source.leaf, sink.leaf, None, None, here.covered, within=next(late, None))
            fresh = self.model.scope_syms(one.buffer) if not other.writes else frozenset[Sym]()
            for carrier in (loop for loop in common if loop.sym not in fresh):
                carried = here.carried(carrier)
                if carried.happens():
                    near = (n for n in range(1, FAR) if carried.happens(apart("==", carrier, n)))
                    yield Dependence(source.leaf, sink.leaf, carrier, None, carried.covered, next(near, FAR))

    def slots(self, nest: Nest, nodes: tuple[Node, ...], buffer: Buffer) -> tuple[int, ...] | None:
        """The number of threads along each dimension of a team's local, if each element is accessed by one thread only; else
        None.

        The relation decides that no two accesses of an element are by different threads. All ones, if the distribution is
        unknown and each thread has an array of the whole shape.
        """
        ends = [end for end in self.ends_of(nest, nodes) if end.access.buffer is buffer]
        if not ends or not all(self._one_thread(a, b, nest) for a, b in combinations_with_replacement(ends, 2)):
            return None
        dealt = {_dealt(end.access, nest) for end in ends}
        found = dealt.pop()
        if not dealt and found is not None:
            return tuple(prod(digit.radix for digit in digits) for digits in found)
        return tuple(1 for _ in buffer.shape)

    def _one_thread(self, one: End, other: End, nest: Nest) -> bool:
        """Whether the accesses of one element of one `new` by both ends are by the same thread."""
        if one.thread is None or other.thread is None:
            return False
        scope = [s for s in one.access.instance.syms if s in self.model.scope_syms(one.access.buffer)]
        fresh = equal([expr(left(s)) for s in scope], [expr(right(s)) for s in scope])
        return Conflict(self.model, nest, one, other).stays_within(1, fresh)

    def ends_of(self, nest: Nest, nodes: tuple[Node, ...], crossing: Collection[Step] = ()) -> Iterator[End]:
        leaf_of: dict[ir.Stmt, Step] = {}
        totals: dict[ir.Stmt, Step] = {}
        order: dict[Step, int] = {}
        for number, leaf in enumerate(leaves(nodes)):
            order[leaf] = number
            if isinstance(leaf.work, Middle):
                continue
            if isinstance(leaf.work, Total):
                totals[leaf.stmt] = leaf
            elif isinstance(leaf.stmt, ir.Par | ir.Seq | ir.Instruction):
                leaf_of.update((nest.origin.get(stmt, stmt), leaf) for stmt in ir.walk((leaf.stmt,)))
            else:
                leaf_of[nest.origin.get(leaf.stmt, leaf.stmt)] = leaf
        for instance in self.model.instances:
            leaf = leaf_of.get(instance.stmt)
            if leaf is None:
                continue
            for access in instance.accesses:
                total = totals.get(leaf.stmt) if isinstance(leaf.work, Partial) and access.kind == "update" else None
                if total is not None and (half := _met_in(total, access.buffer)) is not None:
                    yield End(access, total, order[total], None if half.replicated else ZERO)
                elif isinstance(leaf.work, Spread | Partial):
                    thread = Simplifier(instance.known)(thread_of(nest, instance.loops))
                    yield End(access, leaf, order[leaf], thread)
                else:
                    crosses = leaf in crossing and access.writes
                    yield End(access, leaf, order[leaf], ZERO if leaf.threads.is_one else None, crosses)

    def _pairs(
        self,
        ends: list[End],
        nest: Nest,
        around: Mapping[Step, Around],
        loads: Collection[Step],
        copying: Collection[Step],
    ) -> Iterator[Dependence]:
        """The needs among accesses of one buffer, nearest pairs first; implied ones are skipped."""
        atomics = self._atomics(nest)
        found = Implied(around)
        for source, sink in _nearest_first(ends, found):
            if source.leaf in loads or not (source.access.writes or sink.access.writes):
                continue
            if source.access.instance.stmt in atomics and sink.access.instance.stmt in atomics:
                continue
            outer, inner = around[source.leaf].loops, around[sink.leaf].loops
            common = tuple(a for a, b in zip(outer, inner, strict=False) if a is b)
            together = Conflict(self.model, nest, source, sink, common)
            for carrier in (None, *common):
                if carrier is None and source.order >= sink.order:
                    continue
                here = together if carrier is None else together.carried(carrier)
                late = carrier is not None and source.leaf in copying
                if not late and found.has(here):
                    continue
                for need in _need(here, outer[len(common) :], inner[len(common) :]):
                    near = need.within is None and not need.distant
                    if near and need.scope and (reach(need.scope) >= reach(here.widest) or nest.team <= nest.warp):
                        found.add(here)
                    yield need

    def _atomics(self, nest: Nest) -> frozenset[ir.Bind]:
        if nest not in self._atomic:
            self._atomic[nest] = frozenset(atomic_binds(tuple(m.loop for m in nest.grid), nest.body))
        return self._atomic[nest]


def _met_in(total: Step, buffer: Buffer) -> Half | None:
    """The total or middle step of a reduction, if that reduces into `buffer`."""
    half = total.work
    met = isinstance(half, Half) and any(buffer is t.buffer for a in half.accumulators for t in a.targets)
    return half if isinstance(half, Half) and met else None


def _nearest_first(ends: Sequence[End], found: Implied) -> Iterator[tuple[End, End]]:
    """Pairs of `ends` by distance; for steps of one list outside of loops, those that `found` does not imply meanwhile."""
    if not found.in_one_list(ends):
        yield from sorted(product(ends, ends), key=lambda pair: abs(pair[1].order - pair[0].order))
        return
    order = sorted(range(len(ends)), key=lambda n: ends[n].order)
    waiting = [
        (ends[sink].order - ends[source].order, source, sink, at) for at, (source, sink) in enumerate(pairwise(order), 1)
    ]
    heapify(waiting)
    while waiting:
        _, source, sink, at = heappop(waiting)
        yield ends[source], ends[sink]
        if at + 1 < len(order) and not found.reaches(ends[source], ends[sink]):
            sink = order[at + 1]
            heappush(waiting, (ends[sink].order - ends[source].order, source, sink, at + 1))


def _dealt(access: Access, nest: Nest) -> tuple[tuple[Digit, ...], ...] | None:
    """For each dimension the digits of the thread number in its subscript, if these are all digits of the thread."""
    maps = [m for loop in access.instance.loops if isinstance(loop, ir.Par) and (m := nest.loops.get(loop))]
    team = {expr(m.loop.sym): m for m in maps if m.role is not Role.GRID and m.radix > 1}
    digits = [team.get(e) for e in access.load.index]
    if {id(d) for d in digits if d is not None} != {id(m) for m in team.values()} or not team:
        return None
    return tuple(d.digits if d is not None else () for d in digits)


def _need(here: Conflict, outer: tuple[ir.Seq, ...], inner: tuple[ir.Seq, ...]) -> Iterator[Dependence]:
    """The needs of one dependence, with as narrow a scope as the iterations at its ends allow; `outer`, `inner`: the loops
    around one end alone."""
    source, sink, carrier, covered = here.source.leaf, here.sink.leaf, here.carrier, here.covered
    if carrier is not None:
        near = here.scope(apart("==", carrier, 1))
        if near is not None:
            yield Dependence(source, sink, carrier, near[0], covered, 1, part=near[1])
        if near is not None and (reach(near) >= reach(here.widest) or here.nest.team <= here.nest.warp):
            return
        far = here.scope(apart(">", carrier, 1))
        if far is not None and far != near:
            yield Dependence(source, sink, carrier, far[0], covered, 2, part=far[1])
        return
    scope = here.scope()
    if scope is not None:
        edges = _edges(here.source.access, outer, inner)
        free = (loop for loop, nearest in edges if here.scope(nearest) is None)
        yield Dependence(source, sink, None, scope[0], covered, within=next(free, None), part=scope[1])


def _edges(source: Access, outer: tuple[ir.Seq, ...], inner: tuple[ir.Seq, ...]) -> Iterator[tuple[ir.Seq, Formula]]:
    """Loops around one end alone, each with its iteration adjacent to the other end: the last, or the first."""
    for loop in outer[:1]:
        last = (loop.extent - 1).substitute({s: expr(left(s)) for s in source.instance.syms})
        yield loop, compare("==", left(loop.sym), last)
    for loop in inner[:1]:
        yield loop, compare("==", right(loop.sym), 0)


def _running(nodes: tuple[Node, ...], facts: tuple[Expr, ...]) -> Iterator[ir.Seq]:
    """The loops of a tree whose trip count `facts`, and those of enclosing loops, prove positive."""
    for node in nodes:
        match node:
            case Step():
                pass
            case Loop(stmt, body):
                if known(facts).positive(stmt.extent):
                    yield stmt
                yield from _running(body, (*facts, *in_loop(stmt.sym, stmt.extent)))
            case Branch() | Part():
                for inner in below(node):
                    yield from _running(inner, facts)


def _reach_needs(
    ends: Mapping[Buffer, list[End]], nodes: tuple[Node, ...], places: Mapping[Buffer, Place]
) -> Iterator[Dependence]:
    """A block must not exit while others of its cluster may read its part of a buffer."""
    end_step = end_of(nodes)
    if end_step is None:
        return
    clustered = {b: place for b, place in places.items() if place.space is k.Space.CLUSTER}
    for buffer, place in clustered.items():
        for end in ends.get(buffer, ()):
            if end.access.reads and not place.is_own(end.access.load.index):
                covered = k.Covered("END", buffer.name, end.access.instance.stmt.span, NOWHERE)
                yield Dependence(end.leaf, end_step, None, k.Level.CLUSTER, covered)


def _scratch_needs(nodes: tuple[Node, ...], nest: Nest, around: Mapping[Step, Around]) -> Iterator[Dependence]:
    """A reduction over several warps stores partial sums for all of them, perhaps again in the next iteration."""
    if nest.team <= nest.warp:
        return
    level = k.Level.CLUSTER if nest.blocks > 1 else k.Level.BLOCK
    end = end_of(nodes)
    partials = {leaf.stmt: leaf for leaf in leaves(nodes) if isinstance(leaf.work, Partial)}
    for leaf in leaves(nodes):
        if isinstance(leaf.work, Middle):
            yield from _in_turn(partials[leaf.stmt], leaf, around, k.Level.BLOCK)
            partials[leaf.stmt] = leaf
    for leaf in leaves(nodes):
        if not isinstance(leaf.work, Total):
            continue
        yield from _in_turn(partials[leaf.stmt], leaf, around, level)
        if end is not None:
            covered = k.Covered("END", "partial values", leaf.stmt.span, NOWHERE)
            yield Dependence(leaf, end, None, level, covered)


def _in_turn(source: Step, sink: Step, around: Mapping[Step, Around], level: k.Level) -> Iterator[Dependence]:
    """Partial sums are stored before they are combined, and combined before the next iteration stores others."""
    span = sink.stmt.span
    yield Dependence(source, sink, None, level, k.Covered("RAW", "partial values", span, span))
    if around[sink].loops:
        carrier = around[sink].loops[-1]
        covered = k.Covered("WAR", "partial values", span, span, carrier.sym)
        yield Dependence(sink, source, carrier, level, covered, 1)
