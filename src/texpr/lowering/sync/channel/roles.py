"""Roles: a warp copies ahead, and the warps of the team use what it brings; between them are barriers for full and empty slots.

    repeat seq K / 64 + 3 |ko| {                                    role copy, one thread          role compute
        choose decided { issue As, issue Bs }                →      wait empty[s]; issue           …
        choose decided_1 { wait full[s]; start …; commit }          …                         wait full[s]; start …; commit
    }                                                                                         wait_warpgroup; release empty[s]

Dependences between both go along the channel: RAW by `full`, as without roles (`lowering.sync.phases`); WAR by `empty`, in
place of a barrier of the block. With a ring that lags, a release is one turn late, behind a wait that leaves the latest group.
Where threads that compute have to meet, as for results that the engine stores, they do so by a barrier of theirs. What would
need one of all threads is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from texpr.affine.expr import Expr, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Roles
from texpr.ir.steps import Branch, Loop, Node, Part, Step, Steps, leaves
from texpr.ir.steps.threads import Threads
from texpr.ir.steps.work import Decide, Run
from texpr.ir.value import Buffer, Index, Load, Op
from texpr.ir.value.types import BOOL, I64, U64
from texpr.isa.cuda import WARPGROUP
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.names import Names
from texpr.lowering.sync import warpgroup
from texpr.lowering.sync.barriers import Barriers, behind_start
from texpr.lowering.sync.channel import relay
from texpr.lowering.sync.channel.uses import Uses
from texpr.lowering.sync.engines import Engines
from texpr.lowering.sync.phases import Group, awaited
from texpr.lowering.sync.turns import Ring
from texpr.mapping.nest import Nest
from texpr.schedule.edits import left_out
from texpr.support.diagnostic import Limitation, limitation
from texpr.support.record import Record, replace


class Split(Record, eq=False):
    """A loop whose work two roles share: `fills` are branches with its copies, all else is in the branch `uses` behind them.
    `around`: the loop over the tiles of a block, if it is in one, whose other steps are of the role that computes. `shared`:
    copies to all of the `blocks` of a cluster. `groups`: of `threads` each, that take tiles in turn."""

    asked: Roles
    around: tuple[Loop, ...]
    loop: Loop
    fills: tuple[Branch, ...]
    uses: Branch
    threads: int
    warp: int
    shared: frozenset[Step]
    blocks: int
    groups: int = 1

    @property
    def copy(self) -> k.Role:
        """The warps that copy: those behind the ones that compute."""
        return k.Role("copy", self.compute.warps, self.asked.copy, self.asked.registers[0])

    @property
    def compute(self) -> k.Role:
        """The warps of the team, or of all groups that take turns, each of which is one."""
        return k.Role("compute", 0, self.groups * self.threads // self.warp, self.asked.registers[1])

    def own(self, thread: Expr) -> Expr:
        """The number of a thread that computes in its team."""
        return thread % self.threads if self.groups > 1 else thread

    @property
    def others(self) -> int:
        """The warps of a block beside those of a team."""
        return self.compute.warps + self.copy.warps - self.threads // self.warp

    @property
    def leader(self) -> Threads:
        """The thread that copies."""
        first = self.compute.warps * self.warp
        return Threads(first, first + 1)

    @property
    def copies(self) -> frozenset[Step]:
        """What the warps that copy do, and how they decide about it."""
        return frozenset(leaves(self.fills))

    def covers(self, need: Dependence) -> bool:
        """Whether a dependence goes along the channel."""
        inside, copies = {*leaves(self.loop.body)}, self.copies
        return {need.source, need.sink} <= inside and (need.source in copies or need.sink in copies)

    def is_of_copies(self, node: Node) -> bool:
        """Whether a node of the loop is a copy's branch, or the decision that it is by; in the form with operations, too."""
        symbol = node.decided if isinstance(node, Branch) else getattr(getattr(node, "work", None), "symbol", None)
        return symbol is not None and any(symbol is fill.decided for fill in self.fills)

    def meeting(self, barriers: Barriers, needs: Iterable[Dependence], nodes: tuple[Node, ...]) -> Barriers:
        """The barriers for `needs`, of the threads that compute in place of the block. Refuses what would need one of all
        threads."""
        copies = self.copies
        filling = {each.number for each in lists(nodes) if {*each.nodes} & copies}
        apart = [need.covered for need in needs if need.source in copies or need.sink in copies]
        apart += [each.covers[0] for (number, _), each in barriers.items() if number in filling]
        if apart:
            name = apart[0].buffer
            raise self.refused(f"for `{name}` all threads of a block would have to meet, those that copy among them")
        own = {gap: replace(each, part=self.threads) for gap, each in barriers.items() if each.level is k.Level.BLOCK}
        return {**barriers, **own}

    def refused(self, why: str) -> Limitation:
        """The refusal of these roles."""
        return limitation("E0920", self.asked.span, why, offers=left_out(self.asked.span))


def split(steps: Steps, nest: Nest, engines: Engines, cluster: Cluster) -> Split | None:
    """The loop of a nest that two roles share, if a schedule asks for it. Raises Limitation."""
    found = [(*path, asked) for path in _loops(steps.body) if (asked := mark(path[-1].stmt, Roles))]
    if not found:
        relay.require_roles(steps)
        return None
    *around, loop, asked = found[0]
    branches = [node for node in loop.body if isinstance(node, Branch)]
    fills = [node for node in branches if not node.orelse and _only_copies(node.then, engines)]
    uses = [node for node in branches if node not in fills]
    if not (fills and uses):
        why = f"`{loop.stmt.sym.base}` is not a loop of copies by the engine, and of what uses them"
        raise limitation("E0920", asked.span, why, offers=left_out(asked.span))
    size = steps.threads, steps.warp, engines.shared, cluster.size
    groups = relay.groups_of(steps, tuple(around))
    made = Split(asked, tuple(around), loop, tuple(fills), uses[0], *size, groups)
    others = [node for node in loop.body if node not in branches]
    alone = len(found) == len(uses) == 1 and len(around) <= 1 and branches[-1] is uses[0]
    if not (alone and all(isinstance(node, Step) and isinstance(node.work, Decide | Run) for node in others)):
        raise made.refused(f"`{loop.stmt.sym.base}` is not a loop of copies ahead and of what uses them alone")
    if asked.compute * steps.warp != steps.threads * groups or nest.team != nest.threads or steps.threads % WARPGROUP:
        have = f"{steps.threads * groups} threads of a block compute"
        raise made.refused(f"{have}, and {asked.compute} warps are asked for: warpgroups of {WARPGROUP} threads")
    ragged = any(along.ragged or along.tile > 1 for along in steps.grid)
    stored = any(leaf in engines.stores for leaf in leaves(loop.body))
    if stored or ragged or [a.dim for a in steps.axes if a.level is k.Level.BLOCK] != ["x"]:
        raise made.refused(
            "stores by the engine in the loop, grids of no whole clusters, and blocks of several dimensions have no roles yet"
        )
    relay.require_apart(steps, made, bool(engines.launched))
    return made


def _only_copies(nodes: tuple[Node, ...], engines: Engines) -> bool:
    """Whether all that is done is to decide about copies by the engine, and to start them."""
    steps = [*leaves(nodes)]
    copies = [step for step in steps if step in engines.loads]
    return bool(copies) and all(step in copies or isinstance(step.work, Decide) for step in steps)


def require_found(function: ir.Function, kernels: Iterable[k.Kernel]) -> None:
    """Refuses roles of a loop that is in no kernel as a schedule has it: they are never passed over."""
    asked = [found for stmt in ir.walk(function.body) if isinstance(stmt, ir.Par | ir.Seq) and (found := mark(stmt, Roles))]
    every = (stmt for kernel in kernels for stmt in k.walk(kernel.body))
    made = {stmt.role.name for stmt in every if isinstance(stmt, k.If) and stmt.role}
    if asked and not made:
        why = "no kernel has the loop that its roles are for"
        raise limitation("E0920", asked[0].span, why, offers=left_out(asked[0].span))


def _loops(nodes: tuple[Node, ...], around: tuple[Loop, ...] = ()) -> Iterator[tuple[Loop, ...]]:
    """Every loop, behind those around it, outermost first; no loop in a branch."""
    for node in nodes:
        if isinstance(node, Loop):
            yield (*around, node)
            yield from _loops(node.body, (*around, node))


class Slots(Record, eq=False):
    """The barriers for empty slots of one ring. `acquire`: what its copies do first, at program point `first`; `releases`: what
    is done behind its uses. `blocks`: how many blocks of a cluster use what each of them copies, and release its slots."""

    empty: k.Array
    blocks: int
    first: ProgramPoint
    acquire: k.Stmt
    releases: Mapping[ProgramPoint, tuple[k.Stmt, ...]]


class Channel(Record, eq=False):
    """What both roles of a split loop do for empty slots, ring by ring. `relay`: what groups do that take tiles in turn."""

    split: Split
    rings: tuple[Slots, ...]
    relay: relay.Relay | None = None

    @property
    def arrays(self) -> tuple[k.Array, ...]:
        """The barriers."""
        return (*(ring.empty for ring in self.rings), *((self.relay.order,) if self.relay else ()))

    @property
    def copying(self) -> frozenset[ProgramPoint]:
        """The program points at which the thread that copies waits."""
        return frozenset(ring.first for ring in self.rings)

    def beside(self, gaps: Mapping[ProgramPoint, tuple[k.Stmt, ...]]) -> dict[ProgramPoint, tuple[k.Stmt, ...]]:
        """The operations at program points, with those for empty slots behind what is there for other reasons."""
        found = dict(gaps)
        for ring in self.rings:
            for gap, does in {**ring.releases, ring.first: (ring.acquire,)}.items():
                found[gap] = (*found.get(gap, ()), *does)
        return found if self.relay is None else self.relay.beside(found)

    @property
    def made(self) -> Iterator[k.Stmt]:
        """The initialisations of its barriers: a phase is an arrival of each warp, of all blocks that use the slot."""
        warps, span = self.split.compute.warps // self.split.groups, self.split.asked.span
        slots = ((ring, slot) for ring in self.rings for slot in range(ring.empty.buffer.shape[0].constant))
        every = [(Load(ring.empty.buffer, (expr(slot),)), warps * ring.blocks, span) for ring, slot in slots]
        if self.relay is not None:
            every += [(barrier, warps, self.relay.span) for barrier in self.relay.barriers]
        yield from (k.BarrierInit(barrier, count, span=of) for barrier, count, of in every)

    @property
    def left(self) -> k.Stmt | None:
        """The barrier of a cluster behind the last release, if others arrive in a block: it does not end before."""
        if all(ring.blocks == 1 for ring in self.rings):
            return None
        span = self.split.asked.span
        return behind_start(tuple(k.Covered("WAR", ring.empty.buffer.name, span, span) for ring in self.rings), True)


def channel(
    own: Split,
    nodes: tuple[Node, ...],
    groups: tuple[Group, ...],
    rings: Mapping[Step, Ring],
    runs: tuple[warpgroup.Run, ...],
    waits: Mapping[ProgramPoint, k.WaitWarpgroup],
    needs: tuple[Dependence, ...],
    started: Mapping[Step, warpgroup.Started],
    names: Names,
) -> Channel:
    """The channel of a split loop. `needs`: the dependences along it; `waits`: those of warpgroups that are there for other
    reasons. Raises Limitation."""
    filled = [group for group in groups if any(member.leaf in own.copies for member in group.members)]
    within = Uses(nodes, own.loop.body, runs, {gap: wait.pending for gap, wait in waits.items()})
    slots = tuple(_slots(own, group, rings, needs, within, started, names) for group in filled)
    return Channel(own, slots, relay.handed_over(own, nodes, names) if own.groups > 1 else None)


def _slots(
    own: Split,
    group: Group,
    rings: Mapping[Step, Ring],
    needs: tuple[Dependence, ...],
    within: Uses,
    started: Mapping[Step, warpgroup.Started],
    names: Names,
) -> Slots:
    """The barriers for empty slots of the ring that a group of copies fills. Raises Limitation."""
    copies, span = [member.leaf for member in group.members], own.asked.span
    ring = rings.get(copies[0])
    if ring is None or any(rings.get(leaf) != ring for leaf in copies):
        raise own.refused("copies of the loop do not fill rings of slots")
    uses = [need for need in needs if need.source in copies and need.covered.kind == "RAW"]
    if any(need.sink not in started for need in uses):
        raise own.refused("what is copied ahead is read by more than products of warpgroups")
    if any(own.loop.stmt is not need.carrier for need in uses) or not uses:
        raise own.refused("what is copied ahead is used in other turns than those of the loop")
    ahead = {need.distance for need in uses}
    if len(ahead) != 1:
        raise own.refused("products use what was copied in several turns before")
    (turns,) = ahead
    lag = ring.slots - 1 - turns if within.are_one else 0
    if lag < 0:
        raise own.refused("a slot is used longer than until it is filled again")
    covers = tuple(dict.fromkeys(n.covered for n in needs if n.covered.kind == "WAR" and n.sink in copies))
    listed = ", ".join(f"`{member.tile.buffer.name}`" for member in group.members)
    empty = Buffer(
        names.name("_".join((*(member.tile.buffer.name for member in group.members), "empty"))),
        U64, (expr(ring.slots),), "local", span=span,
    )  # fmt: skip
    array = k.Array(empty, k.Space.SHARED, f"completes when a slot of {listed} was read", barrier=True)
    turn, blocks = expr(ring.sym), own.blocks if not own.shared.isdisjoint(copies) else 1
    freed = ring.phase.at(ring.sym, turn - turns - lag)
    bare = k.BarrierRelease(Load(empty, (freed.slot,)), covers, blocks, span=span)
    release = _from(ring.first + turns + lag, turn, bare) if lag else (bare,)
    acquire = awaited(Load(empty, (ring.phase.slot,)), ring.phase.completed + 1, covers, span)
    ends = within.ends({need.sink for need in uses})
    if ends is None:
        raise own.refused("products in several places of a turn use what was copied")
    wait = k.WaitWarpgroup(lag, (), covers, span=span)
    releases = {gap: release if is_done else (wait, *release) for gap, is_done in ends.items()}
    if own.around and lag:
        releases |= _drained(own, ring, empty, blocks, lag, within, covers)
    return Slots(array, blocks, (group.number, group.last - len(copies)), acquire, releases)


def _drained(
    own: Split, ring: Ring, empty: Buffer, blocks: int, lag: int, within: Uses, covers: tuple[k.Covered, ...]
) -> dict[ProgramPoint, tuple[k.Stmt, ...]]:
    """The last releases of a tile, behind its loop: the copies of the next tile wait for them."""
    behind = next(each for each in lists(within.nodes) if any(node is own.loop for node in each.nodes))
    gap, span = (behind.number, next(at for at, node in enumerate(behind.nodes) if node is own.loop)), own.asked.span
    made: list[k.Stmt] = [] if within.waits.get(gap) == 0 else [k.WaitWarpgroup(0, (), covers, span=span)]
    for late in range(lag, 0, -1):
        last = ring.end - late
        release = k.BarrierRelease(Load(empty, (ring.phase.at(ring.sym, last).slot,)), covers, blocks, span=span)
        made += _from(ring.first, last, release)
    return {gap: tuple(made)}


def _from(first: Expr, turn: Expr, release: k.Stmt) -> tuple[k.Stmt, ...]:
    """A release in turns from the `first` on: under a test, where that is not known of `turn`."""
    margin = turn - first
    if margin.is_constant:
        return (release,) if margin.constant >= 0 else ()
    reached = Op("ge", (Index(turn, I64), Index(first, I64)), BOOL)
    return (k.If(reached, (release,), uniform=True, span=release.span),)


def parted(found: Channel, nodes: Iterable[Node]) -> Iterator[Node]:
    """The woven nodes of an iteration, each with its role. Loops are those of `found`, with other bodies."""
    own, kept = found.split, list[Node]()
    around = [loop.stmt.sym for loop in own.around]
    for node in nodes:
        if not (isinstance(node, Loop) and node.stmt.sym in (*around, own.loop.stmt.sym)):
            kept.append(node)
            continue
        if kept:
            yield Part(own.compute, tuple(kept))
        if node.stmt.sym in around:
            yield replace(node, body=tuple(parted(found, node.body)))
        else:
            copies = tuple(each for each in node.body if own.is_of_copies(each))
            others = tuple(each for each in node.body if not own.is_of_copies(each))
            yield replace(node, body=(Part(own.copy, copies), Part(own.compute, others)))
        kept = []
    if kept:
        yield Part(own.compute, tuple(kept))
