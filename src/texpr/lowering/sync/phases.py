"""Phases of copies by the tensor memory accelerator: the thread that starts them, and the waits for phases of barriers.

    if (thread == 0) { expect full[0], 16384;  copy As = …;  copy Bs = … }      adjacent copies share a barrier
    wait full[0], ko % 2                                                        all threads, before a dependent step

    fence; barrier;  if (thread == 0) { store C_map[…] = Cs;  commit;  wait read }        wait for the rest at the kernel's end

The number of earlier phases follows from the loops around, so the parity is an index expression. A wait only tests the parity:
so a copy begins a phase only when every thread has waited for the last one. Copies that later iterations of a loop use fill
rings of slots, with a barrier for each slot (`texpr.lowering.sync.turns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, expr
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Tensor
from texpr.ir.steps import Loop, Node, Step, leaves
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Load, conjunction
from texpr.ir.value.types import U64
from texpr.isa.engine import CHUNK
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.engine.box_copy import BoxCopy, changed, step_of
from texpr.lowering.engine.tensor import Maps
from texpr.lowering.names import Names
from texpr.lowering.sync.fences import across_proxies, fenced
from texpr.lowering.sync.turns import Phase, Ring, around, completed, reached, ring
from texpr.lowering.sync.warpgroup import Started, started
from texpr.mapping.nest import Nest
from texpr.relation.facts import known
from texpr.schedule.edits import staged_by, without
from texpr.support.diagnostic import limitation
from texpr.support.record import Mutable, Record, field, replace

Placed: TypeAlias = Mapping[ProgramPoint, k.Barrier]
"""The barriers that cover dependences between threads."""


class _Group(Record, eq=False):
    """The copies of one barrier: adjacent ones in the list `number`, the last of which is step `last` of it.

    `barrier`: an array with one barrier for each slot of their ring, if they have one. `phase`: the slot and its phase.
    """

    members: tuple[BoxCopy, ...]
    number: int
    last: int
    barrier: Buffer
    phase: Phase

    def at(self, phase: Phase) -> Load:
        """The barrier of a phase."""
        return Load(self.barrier, (phase.slot,))


class Tensors(Mutable):
    """The copies of one nest, by step. `team`: the scope of all threads that execute them. `given`: expressions that are
    non-negative everywhere.

    `rings`: of loads that later turns of a loop alone use, in slots. `started`: what tensor cores of warpgroups do, by step.
    `before`: what all threads do in a gap, ahead of the barrier that may stand there.
    """

    steps: Mapping[Step, BoxCopy]
    maps: Maps
    team: k.Level
    given: tuple[Expr, ...]
    rings: dict[Step, Ring] = field(default_factory=dict[Step, Ring])
    started: Mapping[Step, Started] = field(default_factory=dict[Step, Started])
    before: dict[ProgramPoint, list[k.Stmt]] = field(default_factory=dict[ProgramPoint, "list[k.Stmt]"])
    groups: list[_Group] = field(default_factory=list[_Group])
    reused: dict[BoxCopy, tuple[k.Covered, ...]] = field(default_factory=dict[BoxCopy, "tuple[k.Covered, ...]"])
    followed: dict[BoxCopy, tuple[k.Covered, ...]] = field(default_factory=dict[BoxCopy, "tuple[k.Covered, ...]"])

    @classmethod
    def of(
        cls,
        nodes: tuple[Node, ...],
        places: Mapping[Buffer, Place],
        names: Names,
        needs: Needs,
        nest: Nest,
        cluster: Cluster,
    ) -> Tensors:
        """The copies among the steps of a team."""
        shared = (each.loop for each in lists(nodes) if each.loop is not None and mark(each.loop, Tensor))
        if (loop := next(shared, None)) is not None:
            raise changed(loop)
        steps = {leaf: found for leaf in leaves(nodes) if (found := step_of(leaf, places, needs.around))}
        if steps and nest.blocks > 1:
            reason = "where blocks of a cluster share an iteration, copies of the tensor memory accelerator are not supported"
            span = next(iter(steps.values())).span
            raise limitation("E0918", span, reason, offers=staged_by(span, "ld"))
        for leaf, step in steps.items():
            _require_shared(step, places, known(needs.around(leaf.stmt)))
            if step.among:
                corner = step.at(step.seen, tuple(0 for _ in step.loops)).index
                cluster.require_same(corner, step.among, needs.around(leaf.stmt), step.span)
                cluster.require_alike(around(nodes, leaf), f"copy `{step.tensor.buffer.name}`", step.span)
        stored = {step.tensor.buffer for step in steps.values() if step.stores}
        maps = Maps(places, names, needs.around, needs.model.params, cluster, stored)
        level = k.Level.WARP if nest.team <= nest.warp else k.Level.BLOCK
        return cls(steps, maps, level, needs.model.given, started=started(nodes, places, needs.around))

    @property
    def loads(self) -> dict[Step, BoxCopy]:
        """The copies to shared memory."""
        return {leaf: step for leaf, step in self.steps.items() if not step.stores}

    @property
    def shared(self) -> frozenset[Step]:
        """The multicast copies: they write tiles of all blocks of a cluster."""
        return frozenset(leaf for leaf, step in self.loads.items() if step.among)

    @property
    def stores(self) -> dict[Step, BoxCopy]:
        """The copies from shared memory."""
        return {leaf: step for leaf, step in self.steps.items() if step.stores}

    def turns(self, meetings: Iterable[Dependence], nodes: tuple[Node, ...]) -> Iterator[Dependence]:
        """WAR dependences from the last consumer of a tile to the next copy into it; in a ring one for each distance."""
        found = tuple(meetings)
        for leaf, step in self.loads.items():
            loops = [node for node in around(nodes, leaf) if isinstance(node, Loop)]
            mine = [m for m in found if m.source is leaf]
            sinks = [m.sink for m in mine if m.carrier is None]
            later = [m for m in mine if not sinks and m.carrier is not None and m.covered.kind == "RAW"]
            level = k.Level.CLUSTER if leaf in self.shared else self.team
            if loops and not later:  # without a consumer, all wait after the last step of its list
                inside = frozenset(leaves(loops[-1].body))
                waited = next((sink for sink in sinks if sink in inside), None) or _last_beside(leaf, nodes)
                carrier = loops[-1].stmt
                yield Dependence(waited, leaf, carrier, level, _turn(waited, leaf, carrier), 1, waited=True)
            for meeting in later:
                assert meeting.carrier is not None
                found_ring = self.rings.setdefault(leaf, ring(nodes, step, meeting.carrier.sym, self.given))
                left = found_ring.slots - found_ring.latest(step, meeting.distance)
                covered = _turn(meeting.sink, leaf, meeting.carrier)
                yield Dependence(meeting.sink, leaf, meeting.carrier, level, covered, max(left, 1), waited=True)

    def place(
        self,
        needs: Needs,
        nest: Nest,
        nodes: tuple[Node, ...],
        meetings: Iterable[Dependence],
        placed: Mapping[ProgramPoint, k.Barrier],
    ) -> None:
        """Assigns barriers to copies, and places waits and fences."""
        met = tuple(meetings)
        self._require_quiet(nodes)
        for steps in lists(nodes):
            for begin, end in _runs(steps.nodes, steps.number, self.loads, placed, self._is_parted):
                members = tuple(self.steps[leaf] for leaf in steps.nodes[begin : end + 1] if isinstance(leaf, Step))
                name = self.maps.names.name("_".join((*(m.tile.buffer.name for m in members), "full")))
                own = self.rings.get(members[0].leaf)
                barrier = Buffer(name, U64, (expr(own.slots if own else 1),), "local", span=members[0].span)
                phase = own.phase if own else Phase(ZERO, completed(nodes, members[0], self.given))
                group = _Group(members, steps.number, end, barrier, phase)
                self.groups.append(group)
                if own is None:
                    self._wait(group, steps.nodes, met)
                else:
                    self._wait_later(group, own, nodes, met)
        for leaf, step in self.stores.items():
            self._reuse(step, [m for m in met if m.source is leaf and m.sink is not leaf])
            again = (m for m in met if m.source is m.sink is leaf and m.covered.buffer == step.tensor.buffer.name)
            self.followed[step] = tuple(dict.fromkeys(m.covered for m in again if _in_order(step, m)))
        for step in self.steps.values():
            if not step.in_runs:
                self.maps.of(step)
        across = across_proxies(needs, nest, nodes, self.steps, {leaf: each.tiles for leaf, each in self.started.items()})
        for gap, found in fenced(nodes, across, placed, needs.running(nest, nodes).__contains__).items():
            self.before.setdefault(gap, []).append(k.Fence("async", span=found.sink.stmt.span))

    def _require_quiet(self, nodes: tuple[Node, ...]) -> None:
        """Refuses a load of a tensor that threads of the same kernel write: that would need fences for global memory."""
        for step in self.loads.values():
            if any(_writes(leaf, step.tensor.buffer) for leaf in leaves(nodes) if leaf not in self.stores):
                reason = f"`{step.tensor.buffer.name}` is written in the kernel whose copies load it"
                raise limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))

    def _wait(self, group: _Group, nodes: tuple[Node, ...], meetings: tuple[Dependence, ...]) -> None:
        own = {member.leaf for member in group.members}
        mine = [m for m in meetings if m.source in own and m.sink not in own]
        sinks = {m.sink for m in mine if m.carrier is None}
        after = range(group.last + 1, len(nodes))
        before = next((at for at in after if not sinks.isdisjoint(leaves((nodes[at],)))), len(nodes))
        covers = tuple(dict.fromkeys(m.covered for m in mine))
        self._wait_at((group.number, before - 1), group, group.phase, covers)

    def _wait_later(self, group: _Group, own: Ring, nodes: tuple[Node, ...], meetings: tuple[Dependence, ...]) -> None:
        """Places the waits for copies of earlier iterations: for the phase of that iteration."""
        leaves_of = {member.leaf for member in group.members}
        mine = [m for m in meetings if m.source in leaves_of and m.sink not in leaves_of and m.carrier is not None]
        uses = [m for m in mine if m.covered.kind == "RAW"]
        body = next(steps for steps in lists(nodes) if steps.loop is not None and steps.loop.sym == own.sym)
        numbers, why = {id(steps.nodes): steps.number for steps in lists(nodes)}, self._unfilled(group.members[0], nodes)
        latest = {m: own.latest(group.members[0], m.distance) for m in mine if m in uses}
        for distance in sorted(set(latest.values())):
            turn = expr(own.sym) - distance
            sinks = frozenset(m.sink for m, d in latest.items() if d == distance)
            covers = tuple(dict.fromkeys(m.covered for m, d in latest.items() if d == distance))
            for list, gap in reached(group.members[0], body.nodes, sinks, partial(self._was_filled, own, turn), why):
                self._wait_at((numbers[id(list)], gap), group, own.phase.at(own.sym, turn), covers)

    def _unfilled(self, step: BoxCopy, nodes: tuple[Node, ...]) -> str:
        """The reason why an iteration may use a tile without a copy, for messages."""
        alike = [leaf for leaf, other in self.loads.items() if other.tile.buffer is step.tile.buffer]
        loops = ([node.stmt.sym.base for node in around(nodes, leaf) if isinstance(node, Loop)] for leaf in alike)
        found = [f"`{name}`" for name in dict.fromkeys(inner[-1] for inner in loops if inner)]
        if len(found) < 2:
            return "it is used where it may not have been copied before"
        return f"loops over {' and '.join(found)} copy it in turn, and one uses what another one copied"

    def _was_filled(self, own: Ring, turn: Expr, node: Node) -> bool:
        return own.was_filled(turn, known(self.maps.facts(node.stmt)))

    def _wait_at(self, gap: ProgramPoint, group: _Group, phase: Phase, covers: tuple[k.Covered, ...]) -> None:
        wait = k.BarrierWait(group.at(phase), phase.completed % 2, covers, span=group.members[0].span)
        self.before.setdefault(gap, []).append(wait)

    def _reuse(self, step: BoxCopy, meetings: list[Dependence]) -> None:
        """Records the dependences of writes to the tile; refuses accesses to the tensor after the store."""
        for meeting in meetings:
            if meeting.covered.buffer == step.tensor.buffer.name:
                reason = f"`{step.tensor.buffer.name}` is touched again in the kernel whose copies store it"
                raise limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))
        self.reused[step] = tuple(dict.fromkeys(m.covered for m in meetings))

    @property
    def arrays(self) -> Iterator[k.Array]:
        """The barriers."""
        for group in self.groups:
            listed = ", ".join(f"`{m.tile.buffer.name}`" for m in group.members)
            landed = "has landed" if len(group.members) == 1 else "have landed"
            yield k.Array(group.barrier, k.Space.SHARED, f"completes when {listed} {landed}", barrier=True)

    def aligned(self, array: k.Array) -> k.Array:
        """The array with the alignment that its copies need."""
        own = (s for s in self.steps.values() if self.maps.places[s.tile.buffer].buffer is array.buffer)
        read = (h for each in self.started.values() for h in each.matrices.values() if h.first.buffer is array.buffer)
        periods = (h.how.period for h in read if h.how is not None)
        return replace(array, align=max((array.align, *(s.align for s in own), *periods)))

    def start(self) -> tuple[k.Stmt, ...]:
        """The operations of one thread at the start: initialisation of the barriers, and a fence for the engine."""
        every = ((g, g.at(Phase(expr(slot), ZERO))) for g in self.groups for slot in range(g.barrier.shape[0].constant))
        made = (k.BarrierInit(barrier, 1, span=g.members[0].span) for g, barrier in every)
        return (*made, k.Fence("init")) if self.groups else ()

    @property
    def made(self) -> tuple[k.Covered, ...]:
        """The dependences that the barrier after `start` covers."""
        spans = ((g.barrier.name, g.members[0].span) for g in self.groups)
        return tuple(k.Covered("RAW", name, span, span) for name, span in spans)

    def issue(self, step: BoxCopy) -> Iterator[k.Stmt]:
        """The operations of one thread at the step of a copy."""
        needed = conjunction(self.maps.asked(step))
        if step.among and needed is not None and not self.maps.cluster.alike(needed):
            reason = "whether there is anything to copy may differ from one block of a cluster to another"
            raise limitation("E0918", step.span, reason, offers=without(step.span, "multicast"))
        if step.stores:
            stores = self.maps.stores(step)
            yield from stores if needed is None else (k.If(needed, stores, span=step.span),)
            yield k.CommitBulk(span=step.span)
            if self.followed[step]:
                yield k.WaitBulk(0, covers=(*self.followed[step], *self.reused[step]), span=step.span)
            elif self.reused[step]:
                yield k.WaitBulk(0, read=True, covers=self.reused[step], span=step.span)
            return
        group = next(g for g in self.groups if step in g.members)
        barrier = group.at(group.phase)
        most, exactly = sum(map(self.maps.bytes, group.members)), self.maps.exactly(group.members)
        expect = k.BarrierExpect(barrier, most, span=step.span, exactly=exactly)
        loads = self.maps.loads(step, barrier)
        if needed is not None and self._is_left_out(step):
            yield k.If(needed, (expect, *loads), (k.BarrierArrive(barrier, span=step.span),), span=step.span)
            return
        if step is group.members[0]:
            yield expect
        fillings = () if needed is None else self.maps.fillings(step, barrier)
        yield from loads if needed is None else (k.If(needed, loads, fillings, span=step.span),)

    def barrier_of(self, leaf: Step) -> Buffer | None:
        """The barriers whose phases complete with the copies of a step; None for stores."""
        step = self.steps[leaf]
        return next((group.barrier for group in self.groups if step in group.members), None)

    def _is_left_out(self, step: BoxCopy) -> bool:
        """Whether a load is skipped if it is not needed; its phase then completes without bytes."""
        return step.tested.fill is None and bool(self.maps.asked(step))

    def _is_parted(self, one: BoxCopy, other: BoxCopy) -> bool:
        """Whether two adjacent copies cannot share a barrier."""
        return self._is_left_out(one) or self._is_left_out(other) or self.rings.get(one.leaf) != self.rings.get(other.leaf)

    def finish(self) -> tuple[k.Stmt, ...]:
        """The operation of one thread at the end: the wait for its stores."""
        return (k.WaitBulk(0),) if self.stores else ()


def _require_shared(step: BoxCopy, places: Mapping[Buffer, Place], here: Known) -> None:
    """Refuses tiles that other directives moved: E0913 outside of shared memory, E0916 at a misaligned offset."""
    tile = step.at(step.tile, tuple(0 for _ in step.loops))
    place = places.get(tile.buffer)
    if place is None or place.space is not k.Space.SHARED:
        reason = f"`{tile.buffer.name}` is copied by an engine, which copies between global and shared memory alone"
        raise limitation("E0913", step.span, reason, offers=(*staged_by(step.span, "ld"), *without(step.span, "in")))
    begin = Load(place.buffer, place.index(tile.index)).offset * place.buffer.dtype.bytes
    align = CHUNK if step.in_runs else step.align
    if not here.multiple(begin, align):
        reason = f"tiles of `{tile.buffer.name}` need not begin at multiples of {align} bytes: {begin} bytes"
        raise limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))


def _last_beside(leaf: Step, nodes: tuple[Node, ...]) -> Step:
    """The last step in the list of `leaf`: threads wait after it for a copy that is only used outside of its loop."""
    own = next(steps.nodes for steps in lists(nodes) if any(node is leaf for node in steps.nodes))
    return tuple(leaves(own))[-1]


def _turn(sink: Step, leaf: Step, carrier: ir.Seq) -> k.Covered:
    return k.Covered("WAR", "the phase of a barrier", sink.stmt.span, leaf.stmt.span, carrier.sym)


def _in_order(step: BoxCopy, meeting: Dependence) -> bool:
    """Whether a store must come after an earlier one of its own to the same element: not if results combine in any order."""
    free = meeting.carrier is not None and step.tensor.buffer in meeting.carrier.reduce
    return step.reduce is None or (step.tensor.dtype.is_float and not free)


def _writes(leaf: Step, buffer: Buffer) -> bool:
    binds = (s for s in ir.walk((leaf.stmt,)) if isinstance(s, ir.Bind))
    return any(target.buffer is buffer for bind in binds for target in bind.targets)


def _runs(
    nodes: tuple[Node, ...],
    number: int,
    steps: Mapping[Step, BoxCopy],
    placed: Placed,
    parted: Callable[[BoxCopy, BoxCopy], bool],
) -> Iterator[tuple[int, int]]:
    """The first and last positions of sequences of adjacent copies without a barrier in between."""
    found = {at: steps[node] for at, node in enumerate(nodes) if isinstance(node, Step) and node in steps}
    begin: int | None = None
    for at, step in found.items():
        begin = at if begin is None else begin
        follows = at + 1 in found and (number, at) not in placed
        if not follows or parted(step, found[at + 1]):
            yield begin, at
            begin = None
