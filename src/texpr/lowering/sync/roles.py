"""Roles: a warp copies ahead, and the warps of the team use what it brings; between them are barriers for full and empty slots.

    repeat seq K / 64 + 3 |ko| {                                    role copy, one thread          role compute
        choose decided { issue As, issue Bs }                →      wait empty[s]; issue           …
        choose decided_1 { wait full[s]; start …; commit }          …                         wait full[s]; start …; commit
    }                                                                                         wait_warpgroup; release empty[s]

Dependences between both go along the channel: RAW by `full`, as without roles (`lowering.sync.phases`); WAR by `empty`, in
place of a barrier of the block. With a ring that lags, a release is one turn late, behind a wait that leaves the latest group.
What would need a barrier of all threads is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from texpr.affine.expr import Expr, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Roles
from texpr.ir.steps import Branch, Loop, Node, Part, Step, Steps, below, leaves
from texpr.ir.steps.threads import Threads
from texpr.ir.value import Buffer, Index, Load, Op
from texpr.ir.value.types import BOOL, I64, U64
from texpr.isa.cuda import WARPGROUP
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.names import Names
from texpr.lowering.sync import warpgroup
from texpr.lowering.sync.engines import Engines
from texpr.lowering.sync.phases import Group, awaited
from texpr.lowering.sync.turns import Ring
from texpr.mapping.nest import Nest
from texpr.schedule.edits import left_out
from texpr.support.diagnostic import Limitation, limitation
from texpr.support.record import Record, replace


class Split(Record, eq=False):
    """A loop whose work two roles share: `fills` are its copies, `uses` all else in the branch behind them."""

    asked: Roles
    loop: Loop
    fills: Branch
    uses: Branch
    threads: int
    warp: int

    @property
    def copy(self) -> k.Role:
        """The warps that copy: those behind the team."""
        return k.Role("copy", self.threads // self.warp, self.asked.copy)

    @property
    def compute(self) -> k.Role:
        """The warps of the team."""
        return k.Role("compute", 0, self.threads // self.warp)

    @property
    def leader(self) -> Threads:
        """The thread that copies."""
        return Threads(self.threads, self.threads + 1)

    def covers(self, need: Dependence) -> bool:
        """Whether a dependence goes along the channel."""
        inside, copies = {*leaves(self.loop.body)}, {*leaves(self.fills.then)}
        return {need.source, need.sink} <= inside and (need.source in copies or need.sink in copies)

    def require_apart(self, barriers: Iterable[k.Barrier]) -> None:
        """Refuses what would need a barrier of all threads."""
        for each in barriers:
            name = each.covers[0].buffer
            raise self.refused(f"for `{name}` all threads of a block would have to meet, those that copy among them")

    def refused(self, why: str) -> Limitation:
        """The refusal of these roles."""
        return limitation("E0920", self.asked.span, why, offers=left_out(self.asked.span))


def split(steps: Steps, nest: Nest, engines: Engines) -> Split | None:
    """The loop of a nest that two roles share, if a schedule asks for it. Raises Limitation."""
    found = [(node, asked) for node in _loops(steps.body) if (asked := mark(node.stmt, Roles))]
    if not found:
        return None
    loop, asked = found[0]
    branches = [node for node in loop.body if isinstance(node, Branch) and not node.orelse]
    fills = [node for node in branches if all(isinstance(n, Step) and n in engines.loads for n in node.then)]
    uses = [node for node in branches if node not in fills]
    others = [node for node in loop.body if node not in branches]
    if not (fills and uses):
        why = f"`{loop.stmt.sym.base}` is not a loop of copies by the engine, and of what uses them"
        raise limitation("E0920", asked.span, why, offers=left_out(asked.span))
    made = Split(asked, loop, fills[0], uses[0], steps.threads, steps.warp)
    plain = len(fills) == len(uses) == 1 and all(isinstance(node, Step) for node in others) and len(others) == 2
    alone = len(found) == 1 and any(node is loop for node in steps.body)
    if not (plain and alone):
        raise made.refused(f"`{loop.stmt.sym.base}` is not a loop of copies ahead and of what uses them alone")
    if asked.compute * steps.warp != steps.threads or nest.team != nest.threads or steps.threads % WARPGROUP:
        have = f"{steps.threads} threads of a block compute"
        raise made.refused(f"{have}, and {asked.compute} warps are asked for: warpgroups of {WARPGROUP} threads")
    ragged = any(along.ragged or along.tile > 1 for along in steps.grid)
    if engines.shared or engines.stores or ragged or [a.dim for a in steps.axes if a.level is k.Level.BLOCK] != ["x"]:
        raise made.refused("clusters, stores by the engine, and blocks of several dimensions have no roles yet")
    return made


def require_found(function: ir.Function, kernels: Iterable[k.Kernel]) -> None:
    """Refuses roles of a loop that is in no kernel as a schedule has it: they are never passed over."""
    asked = [found for stmt in ir.walk(function.body) if isinstance(stmt, ir.Par | ir.Seq) and (found := mark(stmt, Roles))]
    every = (stmt for kernel in kernels for stmt in k.walk(kernel.body))
    made = {stmt.role.name for stmt in every if isinstance(stmt, k.If) and stmt.role}
    if asked and not made:
        why = "no kernel has the loop that its roles are for"
        raise limitation("E0920", asked[0].span, why, offers=left_out(asked[0].span))


def _loops(nodes: tuple[Node, ...]) -> Iterator[Loop]:
    for node in nodes:
        if isinstance(node, Loop):
            yield node
        for inner in below(node):
            yield from _loops(inner)


class Channel(Record, eq=False):
    """The barriers for empty slots of a split loop; what copies do `first`, and what uses do `last`, at program points."""

    split: Split
    empty: k.Array
    first: ProgramPoint
    acquire: k.Stmt
    last: ProgramPoint
    release: tuple[k.Stmt, ...]

    def beside(self, gaps: Mapping[ProgramPoint, tuple[k.Stmt, ...]]) -> dict[ProgramPoint, tuple[k.Stmt, ...]]:
        """The operations at program points, with those for empty slots behind what is there for other reasons."""
        first, last = (*gaps.get(self.first, ()), self.acquire), (*gaps.get(self.last, ()), *self.release)
        return {**gaps, self.first: first, self.last: last}

    @property
    def made(self) -> Iterator[k.Stmt]:
        """The initialisations of its barriers: a phase is an arrival of each warp."""
        for slot in range(self.empty.buffer.shape[0].constant):
            barrier = Load(self.empty.buffer, (expr(slot),))
            yield k.BarrierInit(barrier, self.split.compute.warps, span=self.split.asked.span)


def channel(
    own: Split,
    nodes: tuple[Node, ...],
    groups: tuple[Group, ...],
    rings: Mapping[Step, Ring],
    runs: Iterable[warpgroup.Run],
    needs: Iterable[Dependence],
    started: Mapping[Step, warpgroup.Started],
    names: Names,
) -> Channel:
    """The channel of a split loop. `needs`: the dependences along it. Raises Limitation."""
    copies, span = [*leaves(own.fills.then)], own.asked.span
    found = [ring for leaf in copies if (ring := rings.get(leaf)) is not None]
    if len(groups) != 1 or len(found) != len(copies) or any(ring != found[0] for ring in found):
        raise own.refused("copies of the loop do not fill one ring of slots")
    ring, every = found[0], [*needs]
    uses = [need for need in every if need.source in copies and need.covered.kind == "RAW"]
    if any(need.sink not in started for need in uses):
        raise own.refused("what is copied ahead is read by more than products of warpgroups")
    if any(own.loop.stmt is not need.carrier for need in uses) or not uses:
        raise own.refused("what is copied ahead is used in other turns than those of the loop")
    ahead = {need.distance for need in uses}
    turns = [run for run in runs if any(step in leaves(own.uses.then) for step in run.steps)]
    if len(ahead) != 1 or not turns:
        raise own.refused("products use what was copied in several turns before")
    lag = ring.slots - 1 - max(ahead) if len(turns) == 1 else 0
    if lag < 0:
        raise own.refused("a slot is used longer than until it is filled again")
    covers = tuple(dict.fromkeys(need.covered for need in every if need.covered.kind == "WAR"))
    name = names.name("_".join((*(member.tile.buffer.name for member in groups[0].members), "empty")))
    empty = Buffer(name, U64, (expr(ring.slots),), "local", span=span)
    listed = ", ".join(f"`{member.tile.buffer.name}`" for member in groups[0].members)
    array = k.Array(empty, k.Space.SHARED, f"completes when a slot of {listed} was read", barrier=True)
    turn = expr(ring.sym)
    freed = ring.phase.at(ring.sym, turn - max(ahead) - lag)
    release: k.Stmt = k.BarrierRelease(Load(empty, (freed.slot,)), covers, span=span)
    if lag:
        release = k.If(_reached(turn, ring.first + max(ahead) + lag), (release,), uniform=True, span=span)
    acquire = awaited(Load(empty, (ring.phase.slot,)), ring.phase.completed + 1, covers, span)
    numbers = {id(each.nodes): each.number for each in lists(nodes)}
    wait = k.WaitWarpgroup(lag, (), covers, span=span)
    return Channel(
        own, array, (numbers[id(own.fills.then)], -1), acquire,
        (numbers[id(own.uses.then)], len(own.uses.then) - 1), (wait, release),
    )  # fmt: skip


def _reached(turn: Expr, first: Expr) -> Op:
    return Op("ge", (Index(turn, I64), Index(first, I64)), BOOL)


def parted(found: Channel, nodes: Iterable[Node]) -> Iterator[Node]:
    """The woven nodes of an iteration, each with its role. Loops are those of `found`, with other bodies."""
    own, kept = found.split, list[Node]()
    for node in nodes:
        if not (isinstance(node, Loop) and node.stmt.sym is own.loop.stmt.sym):
            kept.append(node)
            continue
        if kept:
            yield Part(own.compute, tuple(kept))
        yield replace(node, body=tuple(_both(own, node.body)))
        kept = []
    if kept:
        yield Part(own.compute, tuple(kept))


def _both(own: Split, nodes: tuple[Node, ...]) -> Iterator[Part]:
    decided = next(each.decided for each in nodes if isinstance(each, Branch) and each.decided is own.fills.decided)
    fills = [n for n in nodes if getattr(n, "decided", getattr(getattr(n, "work", None), "symbol", None)) is decided]
    yield Part(own.copy, tuple(fills))
    yield Part(own.compute, tuple(n for n in nodes if n not in fills))
