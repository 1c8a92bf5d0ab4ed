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

from texpr.affine.expr import ZERO, Expr, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.steps import Loop, Node, Part, Step, leaves
from texpr.ir.value import Buffer, Load
from texpr.ir.value.types import U64
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.engine.box_copy import BoxCopy
from texpr.lowering.names import Names
from texpr.lowering.sync.barriers import Barriers
from texpr.lowering.sync.engines import Engines
from texpr.lowering.sync.turns import Phase, Ring, around, completed, reached, ring
from texpr.relation.facts import known
from texpr.schedule.edits import staged_by
from texpr.support.diagnostic import limitation
from texpr.support.record import Mutable, Record, field
from texpr.support.span import Span


class Turns(Record):
    """When copies may follow each other: `rings` of loads that later turns of a loop alone use, in slots, and the
    dependences from the last consumer of a tile to the next copy into it."""

    rings: Mapping[Step, Ring]
    needs: tuple[Dependence, ...]


def turns(engines: Engines, meetings: Iterable[Dependence], nodes: tuple[Node, ...]) -> Turns:
    """The turns of copies, with a dependence (WAR) for each distance in a ring. Raises Limitation."""
    found, rings, needs = tuple(meetings), dict[Step, Ring](), list[Dependence]()
    for leaf, copy in engines.loads.items():
        loops = [node for node in around(nodes, leaf) if isinstance(node, Loop)]
        mine = [m for m in found if m.source is leaf]
        sinks = [m.sink for m in mine if m.carrier is None]
        later = [m for m in mine if not sinks and m.carrier is not None and m.covered.kind == "RAW"]
        level = k.Level.CLUSTER if leaf in engines.shared else engines.level
        if loops and not later:  # without a consumer, all wait after the last step of its list
            inside = frozenset(leaves(loops[-1].body))
            waited = next((sink for sink in sinks if sink in inside), None) or _last_beside(leaf, nodes)
            carrier = loops[-1].stmt
            needs.append(Dependence(waited, leaf, carrier, level, _turn(waited, leaf, carrier), 1, waited=True))
        for meeting in later:
            assert meeting.carrier is not None
            if leaf not in rings:
                rings[leaf] = ring(nodes, copy, meeting.carrier.sym, engines.given)
            left = rings[leaf].slots - rings[leaf].latest(copy, meeting.distance)
            covered = _turn(meeting.sink, leaf, meeting.carrier)
            needs.append(Dependence(meeting.sink, leaf, meeting.carrier, level, covered, max(left, 1), waited=True))
    return Turns(rings, tuple(needs))


class Group(Record, eq=False):
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

    @property
    def array(self) -> k.Array:
        """Its barriers."""
        listed = ", ".join(f"`{m.tile.buffer.name}`" for m in self.members)
        landed = "has landed" if len(self.members) == 1 else "have landed"
        return k.Array(self.barrier, k.Space.SHARED, f"completes when {listed} {landed}", barrier=True)


class Phases(Record):
    """Which copies complete together, and what waits for them. `waits`: of all threads in a gap.

    `reused`, `followed`: dependences for which a store's thread waits, until its tile was read, or its elements are written.
    """

    groups: tuple[Group, ...]
    waits: Mapping[ProgramPoint, tuple[k.BarrierWait, ...]]
    reused: Mapping[BoxCopy, tuple[k.Covered, ...]]
    followed: Mapping[BoxCopy, tuple[k.Covered, ...]]


def phases(
    engines: Engines,
    rings: Mapping[Step, Ring],
    nodes: tuple[Node, ...],
    meetings: Iterable[Dependence],
    placed: Barriers,
    is_parted: Callable[[BoxCopy, BoxCopy], bool],
    facts: Callable[[ir.Stmt], tuple[Expr, ...]],
    names: Names,
) -> Phases:
    """The barriers of copies, and the waits for their phases. `placed`: barriers between threads; `is_parted`: whether two
    adjacent copies cannot share one; `facts`: expressions that are non-negative at a statement. Raises Limitation."""
    made = _Phases(engines, rings, nodes, tuple(meetings), placed, is_parted, facts, names)
    return made.run()


class _Phases(Mutable):
    engines: Engines
    rings: Mapping[Step, Ring]
    nodes: tuple[Node, ...]
    met: tuple[Dependence, ...]
    placed: Barriers
    is_parted: Callable[[BoxCopy, BoxCopy], bool]
    facts: Callable[[ir.Stmt], tuple[Expr, ...]]
    names: Names
    waits: dict[ProgramPoint, list[k.BarrierWait]] = field(default_factory=dict[ProgramPoint, "list[k.BarrierWait]"])

    def run(self) -> Phases:
        self._require_quiet()
        groups = tuple(self._groups())
        reused, followed = dict[BoxCopy, tuple[k.Covered, ...]](), dict[BoxCopy, tuple[k.Covered, ...]]()
        for leaf, copy in self.engines.stores.items():
            reused[copy] = _reused(copy, [m for m in self.met if m.source is leaf and m.sink is not leaf])
            again = (m for m in self.met if m.source is m.sink is leaf and m.covered.buffer == copy.tensor.buffer.name)
            followed[copy] = tuple(dict.fromkeys(m.covered for m in again if _in_order(copy, m)))
        return Phases(groups, {gap: tuple(waits) for gap, waits in self.waits.items()}, reused, followed)

    def _groups(self) -> Iterator[Group]:
        """The barriers of adjacent copies; the waits for their phases are placed meanwhile."""
        copies = self.engines.copies
        for steps in lists(self.nodes):
            for begin, end in _runs(steps.nodes, steps.number, self.engines.loads, self.placed, self._is_parted):
                members = tuple(copies[leaf] for leaf in steps.nodes[begin : end + 1] if isinstance(leaf, Step))
                name = self.names.name("_".join((*(m.tile.buffer.name for m in members), "full")))
                own = self.rings.get(members[0].leaf)
                barrier = Buffer(name, U64, (expr(own.slots if own else 1),), "local", span=members[0].span)
                phase = own.phase if own else Phase(ZERO, completed(self.nodes, members[0], self.engines.given))
                group = Group(members, steps.number, end, barrier, phase)
                if own is None:
                    self._wait(group, steps.nodes)
                else:
                    self._wait_later(group, own)
                yield group

    def _is_parted(self, one: BoxCopy, other: BoxCopy) -> bool:
        return self.is_parted(one, other) or self.rings.get(one.leaf) != self.rings.get(other.leaf)

    def _require_quiet(self) -> None:
        """Refuses a load of a tensor that threads of the same kernel write: that would need fences for global memory."""
        for step in self.engines.loads.values():
            if any(_writes(leaf, step.tensor.buffer) for leaf in leaves(self.nodes) if leaf not in self.engines.stores):
                reason = f"`{step.tensor.buffer.name}` is written in the kernel whose copies load it"
                raise limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))

    def _wait(self, group: Group, nodes: tuple[Node, ...]) -> None:
        own = {member.leaf for member in group.members}
        mine = [m for m in self.met if m.source in own and m.sink not in own]
        sinks = {m.sink for m in mine if m.carrier is None}
        after = range(group.last + 1, len(nodes))
        before = next((at for at in after if not sinks.isdisjoint(leaves((nodes[at],)))), len(nodes))
        covers = tuple(dict.fromkeys(m.covered for m in mine))
        self._wait_at((group.number, before - 1), group, group.phase, covers)

    def _wait_later(self, group: Group, own: Ring) -> None:
        """Places the waits for copies of earlier iterations: for the phase of that iteration."""
        leaves_of = {member.leaf for member in group.members}
        mine = [m for m in self.met if m.source in leaves_of and m.sink not in leaves_of and m.carrier is not None]
        uses = [m for m in mine if m.covered.kind == "RAW"]
        body = next(steps for steps in lists(self.nodes) if steps.loop is not None and steps.loop.sym == own.sym)
        numbers, why = {id(steps.nodes): steps.number for steps in lists(self.nodes)}, self._unfilled(group.members[0])
        latest = {m: own.latest(group.members[0], m.distance) for m in mine if m in uses}
        for distance in sorted(set(latest.values())):
            turn = expr(own.sym) - distance
            sinks = frozenset(m.sink for m, d in latest.items() if d == distance)
            covers = tuple(dict.fromkeys(m.covered for m, d in latest.items() if d == distance))
            for list, gap in reached(group.members[0], body.nodes, sinks, partial(self._was_filled, own, turn), why):
                self._wait_at((numbers[id(list)], gap), group, own.phase.at(own.sym, turn), covers)

    def _unfilled(self, step: BoxCopy) -> str:
        """The reason why an iteration may use a tile without a copy, for messages."""
        alike = [leaf for leaf, other in self.engines.loads.items() if other.tile.buffer is step.tile.buffer]
        loops = ([node.stmt.sym.base for node in around(self.nodes, leaf) if isinstance(node, Loop)] for leaf in alike)
        found = [f"`{name}`" for name in dict.fromkeys(inner[-1] for inner in loops if inner)]
        if len(found) < 2:
            return "it is used where it may not have been copied before"
        return f"loops over {' and '.join(found)} copy it in turn, and one uses what another one copied"

    def _was_filled(self, own: Ring, turn: Expr, node: Node) -> bool:
        return not isinstance(node, Part) and own.was_filled(turn, known(self.facts(node.stmt)))

    def _wait_at(self, gap: ProgramPoint, group: Group, phase: Phase, covers: tuple[k.Covered, ...]) -> None:
        wait = awaited(group.at(phase), phase.completed, covers, group.members[0].span)
        self.waits.setdefault(gap, []).append(wait)


def awaited(barrier: Load, before: Expr, covers: tuple[k.Covered, ...], span: Span) -> k.BarrierWait:
    """The wait for the phase of a barrier that so many are before."""
    return k.BarrierWait(barrier, before % 2, covers, span=span)


def _reused(copy: BoxCopy, meetings: list[Dependence]) -> tuple[k.Covered, ...]:
    """The dependences of writes to the tile; refuses accesses to the tensor after the store."""
    for meeting in meetings:
        if meeting.covered.buffer == copy.tensor.buffer.name:
            reason = f"`{copy.tensor.buffer.name}` is touched again in the kernel whose copies store it"
            raise limitation("E0916", copy.span, reason, offers=staged_by(copy.span, "ld"))
    return tuple(dict.fromkeys(m.covered for m in meetings))


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
    placed: Barriers,
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
