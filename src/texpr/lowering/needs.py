"""Which dependences join two threads of a team, read off the relation: instance → element, instance → thread.

Two accesses of one element, one of them a write, at instances that a loop or the text orders, need a barrier if they can lie in
different threads. The set of such pairs is built from both accesses and both threads and shown empty, or not, by isl; what
isl cannot decide counts as a need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement, product
from math import prod
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.lowering.barriers import Need, Scope, parts, reach
from texpr.lowering.emit import atomic_binds
from texpr.lowering.placement import Placement
from texpr.lowering.team import Branch, Leaf, Loop, Node, Team, Who, leaves, thread_of
from texpr.mapping.nest import Digit, Nest, Role
from texpr.presburger.formula import TRUE, Formula, between, compare, conj, disj, equal, syms
from texpr.presburger.linear import NotAffine
from texpr.presburger.maps import left, right
from texpr.presburger.raw import Undecided
from texpr.presburger.sets import Set
from texpr.relation.conditions import condition
from texpr.relation.facts import facts_of, in_loop, known, unfloored
from texpr.relation.model import Access, Model
from texpr.relation.model import Branch as Side

_ONE, _OTHER = Sym("thread'left"), Sym("thread'right")
_BLOCK: Scope = (k.Level.BLOCK, 0)


@dataclass(frozen=True, slots=True)
class End:
    """One access, the step it belongs to, and the thread that makes it (None: every thread).

    `crosses`: another block of the cluster may be the one that makes it.
    """

    access: Access
    leaf: Leaf
    order: int
    thread: Expr | None
    crosses: bool = False


_Pair: TypeAlias = tuple[End, End, ir.Seq | None]


@dataclass(frozen=True, slots=True)
class Around:
    loops: tuple[ir.Seq, ...]
    list: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """A step that touches what an earlier one may still touch, in any threads, `distance` iterations of `carrier` on.

    `within`: a loop around the step alone, in whose first iteration it does not.
    """

    source: Leaf
    sink: Leaf
    carrier: ir.Seq | None
    distance: int
    covered: k.Covered
    within: ir.Seq | None = None


WARP = 32
FAR = 16
"""The most iterations between a copy and its use that are told apart: twice round the longest ring."""


@dataclass(slots=True)
class Needs:
    """Answers for the nests of one function."""

    model: Model
    _atomic: dict[int, frozenset[ir.Bind]] = field(default_factory=dict[int, frozenset[ir.Bind]])
    _known: dict[ir.Stmt, Known] = field(default_factory=dict[ir.Stmt, Known])

    def known(self, stmt: ir.Stmt) -> Known:
        """What is known where `stmt` runs; of an `if` that mapping made anew, where something inside of it does."""
        if not self._known:
            self._known = {instance.stmt: instance.known for instance in self.model.instances}
        return next(self._known[s] for s in ir.walk((stmt,)) if s in self._known)

    def around(self, par: ir.Stmt) -> tuple[Expr, ...]:
        """What is not negative where `par` begins: nothing of its loops, nor what is tested inside of them."""
        within = frozenset(ir.walk((par,)))
        instance = next(each for each in self.model.instances if each.stmt in within)
        facts = [*self.model.given]
        for ancestor in instance.path:
            match ancestor:
                case ir.Par() | ir.Seq() if ancestor not in within:
                    facts += in_loop(ancestor.sym, ancestor.extent)
                case Side() if ancestor.stmt not in within:
                    facts += unfloored(facts_of([condition(ancestor.stmt.condition, holds=ancestor.taken).formula]))
                case _:
                    pass
        return tuple(facts)

    def running(self, nest: Nest, nodes: tuple[Node, ...]) -> frozenset[ir.Seq]:
        """The loops of a team that surely run wherever they are reached."""
        grid = (fact for m in nest.grid for fact in in_loop(m.loop.sym, m.loop.extent))
        return frozenset(_running(nodes, (*self.model.given, *grid)))

    def between(
        self,
        nest: Nest,
        team: Team,
        placement: Placement,
        landing: Collection[Leaf] = (),
        copying: Collection[Leaf] = (),
        crossing: Collection[Leaf] = (),
    ) -> tuple[Need, ...]:
        """Every dependence of `nest` that needs a barrier, those of reductions' scratch memory included.

        `landing`: steps whose effects every thread waits for by other means. `copying`: steps that start copies, for which
        threads wait before they meet. `crossing`: steps that write to other blocks of the cluster, too.
        """
        around = surroundings(team.nodes)
        ends: dict[Buffer, list[End]] = {}
        for end in self.ends_of(nest, team, crossing):
            place = placement.places.get(end.access.buffer)
            if place is None or place.space is not k.Space.LOCAL:
                ends.setdefault(end.access.buffer, []).append(end)
        found = [need for same in ends.values() for need in self._pairs(same, nest, around, landing, copying)]
        landed = (replace(need, landed=need.source in copying) for need in found)
        return (*landed, *_scratch_needs(team, nest, around))

    def meetings(self, nest: Nest, team: Team, sources: Collection[Leaf]) -> Iterator[Meeting]:
        """What touches the same elements after `sources`, whose effects last: what they write, or write over what they read."""
        around = surroundings(team.nodes)
        ends = tuple(self.ends_of(nest, team))
        for source, sink in product((end for end in ends if end.leaf in sources), ends):
            one, other = source.access, sink.access
            if one.buffer is not other.buffer or not (one.writes or other.writes):
                continue
            inner = around[sink.leaf].loops
            common = tuple(a for a, b in zip(around[source.leaf].loops, inner, strict=False) if a is b)
            if source.order < sink.order and self.meet(source, sink, None, common, nest):
                edges = _edges(one, (), inner[len(common) :])
                late = (loop for loop, first in edges if not self.meet(source, sink, None, common, nest, first))
                yield Meeting(source.leaf, sink.leaf, None, 0, _covered(one, other, None), next(late, None))
            fresh = self.model.scope_syms(one.buffer) if not other.writes else frozenset[Sym]()
            for carrier in (loop for loop in common if loop.sym not in fresh):
                if not self.meet(source, sink, carrier, common, nest):
                    continue
                apart = expr(right(carrier.sym)) - expr(left(carrier.sym))
                near = (n for n in range(1, FAR) if self.meet(source, sink, carrier, common, nest, compare("==", apart, n)))
                yield Meeting(source.leaf, sink.leaf, carrier, next(near, FAR), _covered(one, other, carrier))

    def meet(
        self,
        source: End,
        sink: End,
        carrier: ir.Seq | None,
        common: tuple[ir.Seq, ...],
        nest: Nest,
        given: Formula = TRUE,
    ) -> bool:
        """Whether the dependence is there, whatever the threads of its ends."""
        conflict = self._conflict(source, sink, carrier, common, nest, given)
        return conflict is not None and not self._impossible(conflict)

    def _conflict(
        self,
        source: End,
        sink: End,
        carrier: ir.Seq | None,
        common: tuple[ir.Seq, ...],
        nest: Nest,
        given: Formula,
    ) -> Formula | None:
        """The pairs of instances that touch one element, in this order, where `given` holds. None: there are none."""
        if _never_meet(source.access, sink.access):
            return None
        return conj((self.model.facts, given, *_ordered(carrier, common), *self._same_element(source, sink, nest)))

    def slots(self, nest: Nest, team: Team, buffer: Buffer) -> tuple[int, ...] | None:
        """How the dimensions of a team's local are dealt out to threads, if each element is one thread's; else None.

        Whether it is, the relation decides: no two accesses of an element lie in different threads. Ones where each thread has
        an array of the whole shape.
        """
        ends = [end for end in self.ends_of(nest, team) if end.access.buffer is buffer]
        if not ends or not all(self._one_thread(a, b, nest) for a, b in combinations_with_replacement(ends, 2)):
            return None
        dealt = {_dealt(end.access, nest) for end in ends}
        found = dealt.pop()
        if not dealt and found is not None:
            return tuple(prod(digit.radix for digit in digits) for digits in found)
        return tuple(1 for _ in buffer.shape)

    def _one_thread(self, one: End, other: End, nest: Nest) -> bool:
        """Whether the accesses of one element of one `new` by both ends lie in the same thread."""
        if one.thread is None or other.thread is None:
            return False
        scope = [s for s in one.access.instance.syms if s in self.model.scope_syms(one.access.buffer)]
        fresh = equal([expr(left(s)) for s in scope], [expr(right(s)) for s in scope])
        conflict = self._conflict(one, other, None, (), nest, fresh)
        return conflict is None or self._impossible(conj((conflict, *_threads(one, other, nest.team), _apart(1))))

    def ends_of(self, nest: Nest, team: Team, crossing: Collection[Leaf] = ()) -> Iterator[End]:
        leaf_of: dict[ir.Stmt, Leaf] = {}
        totals: dict[ir.Stmt, Leaf] = {}
        order: dict[Leaf, int] = {}
        for number, leaf in enumerate(leaves(team.nodes)):
            order[leaf] = number
            if leaf.who is Who.TOTAL:
                totals[leaf.stmt] = leaf
            elif isinstance(leaf.stmt, ir.Par | ir.Seq):
                leaf_of.update((nest.anew.get(stmt, stmt), leaf) for stmt in ir.walk((leaf.stmt,)))
            else:
                leaf_of[nest.anew.get(leaf.stmt, leaf.stmt)] = leaf
        for instance in self.model.instances:
            leaf = leaf_of.get(instance.stmt)
            if leaf is None:
                continue
            for access in instance.accesses:
                total = totals.get(leaf.stmt) if leaf.who is Who.PARTIAL and access.kind == "update" else None
                if total is not None and any(access.buffer is t.buffer for a in total.accumulators for t in a.targets):
                    yield End(access, total, order[total], None if total.replicated else ZERO)
                elif leaf.who in (Who.SPREAD, Who.PARTIAL):
                    yield End(access, leaf, order[leaf], thread_of(nest, instance.loops))
                else:
                    crosses = leaf in crossing and access.writes
                    yield End(access, leaf, order[leaf], ZERO if leaf.who is Who.LEADER else None, crosses)

    def _pairs(
        self,
        ends: list[End],
        nest: Nest,
        around: Mapping[Leaf, Around],
        landing: Collection[Leaf],
        copying: Collection[Leaf],
    ) -> Iterator[Need]:
        """The needs among accesses of one buffer, nearest ends first; what an earlier one implies is not asked again."""
        atomics = self._atomics(nest)
        found: list[_Pair] = []
        for source, sink in sorted(product(ends, ends), key=lambda pair: abs(pair[1].order - pair[0].order)):
            if source.leaf in landing or not (source.access.writes or sink.access.writes):
                continue
            if source.access.instance.stmt in atomics and sink.access.instance.stmt in atomics:
                continue
            outer, inner = around[source.leaf].loops, around[sink.leaf].loops
            common = tuple(a for a, b in zip(outer, inner, strict=False) if a is b)
            for carrier in (None, *common):
                if carrier is None and source.order >= sink.order:
                    continue
                late = carrier is not None and source.leaf in copying
                crosses = source.crosses or sink.crosses
                wide = (near for near in found if not crosses or near[0].crosses or near[1].crosses)
                if not late and any(_implies(near, (source, sink, carrier), around) for near in wide):
                    continue
                for need in self._need(source, sink, carrier, common, nest, outer, inner):
                    near = need.within is None and not need.distant
                    if near and (reach((need.level, need.part)) >= reach(_BLOCK) or nest.team <= WARP):
                        found.append((source, sink, carrier))
                    yield need

    def _need(
        self,
        source: End,
        sink: End,
        carrier: ir.Seq | None,
        common: tuple[ir.Seq, ...],
        nest: Nest,
        outer: tuple[ir.Seq, ...],
        inner: tuple[ir.Seq, ...],
    ) -> Iterator[Need]:
        """The needs of one dependence, as narrow as iterations at its ends allow."""
        covered = _covered(source.access, sink.access, carrier)
        if carrier is not None:
            apart = expr(right(carrier.sym)) - expr(left(carrier.sym))
            near = self._scope(source, sink, carrier, common, nest, compare("==", apart, 1))
            if near is not None:
                yield Need(source.leaf, sink.leaf, carrier, near[0], covered, part=near[1])
            if near is not None and (reach(near) >= reach(_BLOCK) or nest.team <= WARP):
                return
            far = self._scope(source, sink, carrier, common, nest, compare(">", apart, 1))
            if far is not None and far != near:
                yield Need(source.leaf, sink.leaf, carrier, far[0], covered, distant=True, part=far[1])
            return
        scope = self._scope(source, sink, None, common, nest)
        if scope is None:
            return
        edges = _edges(source.access, outer[len(common) :], inner[len(common) :])
        free = (loop for loop, nearest in edges if self._scope(source, sink, None, common, nest, nearest) is None)
        yield Need(source.leaf, sink.leaf, None, scope[0], covered, within=next(free, None), part=scope[1])

    def _scope(
        self,
        source: End,
        sink: End,
        carrier: ir.Seq | None,
        common: tuple[ir.Seq, ...],
        nest: Nest,
        given: Formula = TRUE,
    ) -> Scope | None:
        """The narrowest scope that holds both ends of the dependence, or None where one thread does or there is none."""
        conflict = self._conflict(source, sink, carrier, common, nest, given)
        if conflict is not None and (source.crosses or sink.crosses):
            return None if self._impossible(conflict) else (k.Level.CLUSTER, 0)
        if conflict is None:
            return None

        pairs = self._set(conj((conflict, *_threads(source, sink, nest.team))))

        def joins(threads: int) -> bool:
            return self._is_empty(pairs, _apart(threads))

        of_block = parts(nest.team) if nest.team == nest.threads else ()
        widest = of_block[-1] if of_block else WARP
        if nest.team > WARP and not joins(widest):
            return _BLOCK
        if joins(1):
            return None
        if nest.team <= WARP or joins(WARP):
            return k.Level.WARP, 0
        return k.Level.BLOCK, next(part for part in of_block if part == widest or joins(part))

    def _same_element(self, source: End, sink: End, nest: Nest) -> Iterator[Formula]:
        first, at = source.access.as_source
        second, to = sink.access.as_sink
        yield first
        yield second
        if source.access.shape == sink.access.shape:
            yield equal(at, to)
        grid = {m.loop.sym for m in nest.grid}
        both = [s for s in source.access.instance.syms if s in grid and s in sink.access.instance.syms]
        yield equal([expr(left(s)) for s in both], [expr(right(s)) for s in both])

    def _impossible(self, formula: Formula) -> bool:
        return self._is_empty(self._set(formula))

    def _set(self, formula: Formula) -> Set | None:
        """What satisfies `formula`, None where that is not to be had."""
        dims = tuple(sorted(syms(formula) - frozenset(self.model.params), key=str))
        try:
            return Set.of(dims, formula, params=self.model.params)
        except (NotAffine, Undecided):
            return None

    def _is_empty(self, found: Set | None, also: Formula = TRUE) -> bool:
        """Whether nothing in a set satisfies `also`, by proof."""
        try:
            return found is not None and (found if also is TRUE else found.where(also)).is_empty()
        except Undecided:
            return False

    def _atomics(self, nest: Nest) -> frozenset[ir.Bind]:
        if id(nest) not in self._atomic:
            self._atomic[id(nest)] = atomic_binds(tuple(m.loop for m in nest.grid), nest.body)
        return self._atomic[id(nest)]


def _dealt(access: Access, nest: Nest) -> tuple[tuple[Digit, ...], ...] | None:
    """For each dimension the digits of the thread number that its subscript has, if all of the thread's are there."""
    maps = [m for loop in access.instance.loops if isinstance(loop, ir.Par) and (m := nest.loops.get(loop))]
    team = {expr(m.loop.sym): m for m in maps if m.role is not Role.GRID and m.radix > 1}
    digits = [team.get(e) for e in access.load.index]
    if {id(d) for d in digits if d is not None} != {id(m) for m in team.values()} or not team:
        return None
    return tuple(d.digits if d is not None else () for d in digits)


def _never_meet(one: Access, other: Access) -> bool:
    """Whether two accesses differ in a dimension where both have a number."""
    pairs = zip(one.index, other.index, strict=False) if one.shape == other.shape else ()
    return any(a.is_constant and b.is_constant and a is not b for a, b in pairs)


def _ordered(carrier: ir.Seq | None, common: tuple[ir.Seq, ...]) -> Iterator[Formula]:
    for loop in common:
        if loop is carrier:
            yield compare("<", left(loop.sym), right(loop.sym))
            return
        yield compare("==", left(loop.sym), right(loop.sym))


def _edges(source: Access, outer: tuple[ir.Seq, ...], inner: tuple[ir.Seq, ...]) -> Iterator[tuple[ir.Seq, Formula]]:
    """Loops around one end alone, each with its iteration that is nearest to the other end: the last, or the first."""
    for loop in outer[:1]:
        last = (loop.extent - 1).substitute({s: expr(left(s)) for s in source.instance.syms})
        yield loop, compare("==", left(loop.sym), last)
    for loop in inner[:1]:
        yield loop, compare("==", right(loop.sym), 0)


def _thread(end: End, name: Sym, side: object, team: int) -> Iterator[Formula]:
    rename = left if side is left else right
    yield between(0, name, team)
    if end.thread is not None:
        renamed = end.thread.substitute({s: expr(rename(s)) for s in end.access.instance.syms})
        yield compare("==", name, renamed)


def _threads(source: End, sink: End, team: int) -> Iterator[Formula]:
    """Which threads both ends are run by."""
    yield from _thread(source, _ONE, left, team)
    yield from _thread(sink, _OTHER, right, team)


def _apart(width: int) -> Formula:
    """That both threads are in different groups of `width` of them."""
    one, other = expr(_ONE) // width, expr(_OTHER) // width
    return disj((compare("<", one, other), compare(">", one, other)))


def _implies(near: _Pair, far: _Pair, around: Mapping[Leaf, Around]) -> bool:
    """Whether every barrier that covers `near` covers `far`: steps of one list, the one pair within the other."""
    parents = {around[end.leaf].list for end in (near[0], near[1], far[0], far[1])}
    if len(parents) != 1:
        return False
    after, before = near[0].order >= far[0].order, near[1].order <= far[1].order
    if far[2] is None:
        return near[2] is None and after and before
    if near[2] is None:
        return around[near[0].leaf].loops[-1:] == (far[2],) and (after or before)
    return near[2] is far[2] and after and before


def _running(nodes: tuple[Node, ...], facts: tuple[Expr, ...]) -> Iterator[ir.Seq]:
    """Loops of a tree that `facts`, and those of the loops around, show to run."""
    for node in nodes:
        match node:
            case Leaf():
                pass
            case Loop(stmt, body):
                if known(facts).positive(stmt.extent):
                    yield stmt
                yield from _running(body, (*facts, *in_loop(stmt.sym, stmt.extent)))
            case Branch():
                yield from _running((*node.then, *node.orelse), facts)


def surroundings(nodes: tuple[Node, ...], loops: tuple[ir.Seq, ...] = ()) -> dict[Leaf, Around]:
    """For each leaf the team's loops around it, outermost first, and the list it is a step of."""
    found: dict[Leaf, Around] = {}
    for node in nodes:
        match node:
            case Leaf():
                found[node] = Around(loops, id(nodes))
            case Loop(stmt, body):
                found |= surroundings(body, (*loops, stmt))
            case Branch():
                found |= surroundings(node.then, loops) | surroundings(node.orelse, loops)
    return found


def _scratch_needs(team: Team, nest: Nest, around: Mapping[Leaf, Around]) -> Iterator[Need]:
    """A reduction over several warps leaves partial values for all of them, and may come again in the next iteration."""
    if nest.team <= WARP:
        return
    partials = {leaf.stmt: leaf for leaf in leaves(team.nodes) if leaf.who is Who.PARTIAL}
    for leaf in leaves(team.nodes):
        if leaf.who is not Who.TOTAL:
            continue
        partial = partials[leaf.stmt]
        span = leaf.stmt.span
        yield Need(partial, leaf, None, k.Level.BLOCK, k.Covered("RAW", "partial values", span, span))
        if around[leaf].loops:
            carrier = around[leaf].loops[-1]
            covered = k.Covered("WAR", "partial values", span, span, carrier.sym)
            yield Need(leaf, partial, carrier, k.Level.BLOCK, covered)


def _covered(source: Access, sink: Access, carrier: ir.Seq | None) -> k.Covered:
    kind = ("WAW" if sink.writes and not sink.reads else "RAW") if source.writes else "WAR"
    return k.Covered(
        kind, source.buffer.name, source.instance.stmt.span, sink.instance.stmt.span, None if carrier is None else carrier.sym
    )
