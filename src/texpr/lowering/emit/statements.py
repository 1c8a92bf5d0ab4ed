"""The statements of a kernel, made of its steps: nothing is decided here.

Before: steps in their order, synchronised (`texpr.lowering.steps`), and where buffers live. After: the body of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, expr, maximum, minimum
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.steps import Step
from texpr.ir.steps.digits import turns
from texpr.ir.steps.work import Decide, End, Middle, Partial, Run, Spread, Total
from texpr.ir.value import Index, Literal, Op, Ref, Value, conjunction
from texpr.ir.value.types import BOOL, I32
from texpr.lowering.build.cluster import Cluster, each_where, only_where
from texpr.lowering.build.coordinates import Coordinates
from texpr.lowering.emit import points, reduce
from texpr.lowering.emit.converge import converged
from texpr.lowering.emit.emitter import Emitter, unrolling
from texpr.lowering.names import Names
from texpr.lowering.place.distributed import ranges
from texpr.lowering.place.owners import by_first, by_thread
from texpr.lowering.place.placement import Placement
from texpr.lowering.steps import Choice, OrderedNode, Repeat, Steps, Sync
from texpr.lowering.sync.phases import Tensors
from texpr.mapping.bands import band
from texpr.mapping.nest import LoopMap, Nest
from texpr.support.record import Mutable, field


class Statements(Mutable):
    """Makes the statements of one nest. `copying`: steps that start asynchronous copies."""

    nest: Nest
    names: Names
    at: Coordinates
    placement: Placement
    tensors: Tensors
    cluster: Cluster
    emitter: Emitter
    copying: frozenset[Step] = frozenset()
    reductions: dict[ir.Stmt, reduce.Reduction] = field(default_factory=dict[ir.Stmt, reduce.Reduction])

    def of_threads(self) -> tuple[k.Stmt, ...]:
        """Those of a nest each of whose iterations is one thread's."""
        return self._guarded(points.around(self._tiles(), self.nest.body, self.emitter))

    def of_team(self, steps: Steps) -> tuple[k.Stmt, ...]:
        """Those of a nest whose iterations are a team's each."""
        return (*self._steps(steps.begin), *self._guarded(self._steps(steps.body)), *self._steps(steps.end))

    def _guarded(self, body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
        """Padding of the grid is kept out."""
        tests: list[Value] = []
        for loop_map in self.nest.grid:
            extent = loop_map.loop.extent
            divides = extent.is_constant and extent.constant % loop_map.tile == 0
            if loop_map.tile > 1 and loop_map.points == 1 and not divides:
                tests.append(Op("lt", (Index(expr(loop_map.loop.sym), I32), Index(extent, I32)), BOOL))
        if self.nest.team == 1 and self.cluster.runs is not None:
            tests.append(self.cluster.runs)
        condition = conjunction(tests)
        return body if condition is None else (k.If(condition, body, uniform=self.nest.team > 1),)

    def _tiles(self) -> tuple[points.Tile, ...]:
        """Grid loops of which one grid iteration runs several points, the one for vector lanes innermost."""
        pairs = zip(self.nest.grid, self.at.blocks, strict=True)
        tiles = (points.Tile(m, block * m.tile) for m, block in pairs if m.points > 1)
        return tuple(sorted(tiles, key=lambda tile: tile.map.lane))

    def scratch(self) -> Iterator[k.Array]:
        """The arrays in which parts of reductions meet."""
        for reduction in self.reductions.values():
            for array in (array for arrays in reduction.scratch for array in arrays):
                yield k.Array(array, k.Space.SHARED, "partial values of the warps of one block")
            for array in (array for arrays in reduction.joint for array in arrays):
                yield k.Array(array, k.Space.CLUSTER, "partial values of the blocks of a cluster")

    def _steps(self, steps: tuple[OrderedNode, ...]) -> tuple[k.Stmt, ...]:
        """The statements of steps; what the first thread alone does, step after step, stands under one test."""
        found: list[k.Stmt] = []
        leading: list[k.Stmt] = []
        for at, step in enumerate(steps):
            if isinstance(step, Step) and step.threads.is_one:
                copy = self.tensors.steps.get(step)
                own = copy is None or copy.stores
                self.emitter.frame = by_first()
                issued = tuple(self.emitter.stmt(step.stmt) if copy is None else self.tensors.issue(copy))
                if not any(isinstance(stmt, k.Shuffle) for stmt in issued):
                    leading.extend(only_where(self.cluster.runs, issued) if own else issued)
                    continue
                made = self._kept_out(step, converged(issued, self.names, (self._leads(),)))  # all lanes take part
            else:
                made = self._step(step, steps[at + 1 :])
            self._flush(leading, found)
            found.extend(made)
        self._flush(leading, found)
        return tuple(found)

    def _step(self, step: OrderedNode, rest: tuple[OrderedNode, ...]) -> Iterator[k.Stmt]:
        match step:
            case Step():
                yield from self._kept_out(step, self._leaf(step, rest))
            case Sync(does, leads):
                yield from (k.If(self._leads(), does),) if leads else does
            case Repeat(stmt, body):
                yield self._loop(stmt, self._steps(body))
            case Choice(stmt, decided, then, orelse):
                yield k.If(Ref(decided, BOOL), self._steps(then), self._steps(orelse), uniform=True, span=stmt.span)

    def _kept_out(self, node: Step, made: Iterator[k.Stmt]) -> Iterator[k.Stmt]:
        """A step as blocks that fill up a cluster run it too: not at all, but for what blocks do together."""
        runs = self.cluster.runs
        if runs is None:
            return made
        if isinstance(node.stmt, ir.If) and self.cluster.alike(node.stmt.condition):
            return made
        return only_where(runs, made) if _is_whole(node) else each_where(runs, made)

    def _flush(self, leading: list[k.Stmt], found: list[k.Stmt]) -> None:
        if leading:
            found.append(k.If(self._leads(), tuple(leading), span=leading[0].span))
            leading.clear()

    def _leads(self) -> Value:
        return Op("eq", (Index(self._team_thread(), I32), Literal(0, I32)), BOOL)

    def _loop(self, loop: ir.Seq, body: tuple[k.Stmt, ...]) -> k.For:
        """A loop that all threads run together."""
        factor = unrolling(loop)
        kind = "serial" if factor is None and loop.sym not in self.placement.unrolled else "unroll"
        return k.For(loop.sym, ZERO, loop.extent, body, ONE, kind, uniform=True, span=loop.span, factor=factor or 0)

    def _leaf(self, leaf: Step, rest: tuple[OrderedNode, ...]) -> Iterator[k.Stmt]:
        self.emitter.frame = by_thread(self.nest.team)
        return converged(self._done(leaf, rest), self.names)

    def _done(self, leaf: Step, rest: tuple[OrderedNode, ...]) -> Iterator[k.Stmt]:
        stmt = leaf.stmt
        match leaf.work, stmt:
            case Spread(), ir.Par():
                idle = self._idle(stmt)
                self.emitter.copying = leaf in self.copying
                body = tuple(self._spread(stmt))
                yield from body if idle is None else (k.If(idle, body, span=stmt.span),)
                self.emitter.copying = False
            case Partial() as half, ir.Par():
                reduction = self.reductions[stmt] = reduce.start(half, self.nest, self.at.rank, self.emitter)
                own = self.at.thread if self.at.rank is not None else self._team_thread()
                yield from reduce.partial(stmt, half, reduction, self.nest, own, self.emitter, self._spread)
            case Middle() as half, ir.Par():
                yield from reduce.middle(stmt, half, self.reductions[stmt], self.at.thread, self.emitter)
            case Total() as half, ir.Par():
                yield from reduce.total(stmt, half, self.reductions[stmt], self._leads(), self.emitter)
            case End(), _:
                pass
            case Decide(decided), ir.If():
                yield from self.emitter.fetch(stmt)
                yield k.Declare(decided, BOOL, self.emitter.value(stmt.condition), span=stmt.span)
            case _, ir.New():
                after = tuple(step.stmt for step in rest if not isinstance(step, Sync) and not _is_half(step))
                yield from self.emitter.new(stmt, after)
            case _:
                yield from self.emitter.stmt(stmt)

    def _team_thread(self) -> Expr:
        if self.at.rank is not None:
            return expr(self.at.rank) * self.nest.threads + self.at.thread
        return self.at.thread if self.nest.team == self.nest.threads else self.at.thread % self.nest.team

    def _plain(self, value: Expr) -> Expr:
        """An index as the coordinates of threads have it."""
        if self.at.rank is None:
            return value
        (thread,) = self.at.thread.syms()
        return Simplifier(ranges(thread, self.nest.threads, self.at.rank, self.nest.blocks))(value)

    def _idle(self, par: ir.Par) -> Value | None:
        """Which threads run a band that does not use every digit of the thread number: those in which the others are 0."""
        maps = [m for p in band(par)[0] if (m := self.nest.loops.get(p)) is not None]
        used = {(d.radix, d.stride) for m in maps for d in m.digits}
        if prod(radix for radix, _ in used) == self.nest.team:
            return None
        return conjunction(
            [
                Op("eq", (Index(self._plain(self._team_thread() // stride % radix), I32), Index(ZERO, I32)), BOOL)
                for radix, stride in self.nest.digits
                if (radix, stride) not in used
            ]
        )

    def _spread(self, par: ir.Par) -> Iterator[k.Stmt]:
        """A loop shared out over the team: each thread takes the iterations with its own digit."""
        loop_map = self.nest.loops[par]
        if self._touches_lanes(par):
            yield from self._in_turns(par, loop_map)
            return
        match par.body:
            case (ir.Par() as inner,) if inner in self.nest.loops and self.nest.loops[inner].role is loop_map.role:
                body = tuple(self._spread(inner))
            case _:
                body = self.emitter.block(par.body)
        digit = self._plain(loop_map.share(self._team_thread(), self.nest.team))
        extent = par.extent
        if extent.is_constant and extent.constant <= loop_map.radix:
            yield k.Declare(par.sym, I32, Index(digit, I32), span=par.span)
            if extent.constant == loop_map.radix:
                yield from body
            else:
                guard = Op("lt", (Index(expr(par.sym), I32), Index(extent, I32)), BOOL)
                yield k.If(guard, body, span=par.span)
        else:
            yield k.For(par.sym, digit, extent, body, expr(loop_map.radix), span=par.span)

    def _touches_lanes(self, par: ir.Par) -> bool:
        """Whether anything in a loop is kept by lanes."""
        kept = {buffer for buffer, place in self.placement.places.items() if place.dealt is not None}
        return bool(kept) and any(load.buffer in kept for stmt in ir.walk(par.body) for load in loads(stmt))

    def _in_turns(self, par: ir.Par, loop_map: LoopMap) -> Iterator[k.Stmt]:
        """A loop shared out over the team, which all lanes run equally often: what is in a slot is the same for all of them."""
        extent, radix, team = par.extent, loop_map.radix, self.nest.team
        turn = None if extent.is_constant and extent.constant <= radix else self.names.sym("turn")
        index = loop_map.share(self._team_thread(), team) + (expr(turn) * radix if turn is not None else ZERO)
        outer = self.emitter.frame
        self.emitter.frame = outer.also(par, loop_map.digits, turn, team)
        match par.body:
            case (ir.Par() as inner,) if inner in self.nest.loops and self.nest.loops[inner].role is loop_map.role:
                body = tuple(self._spread(inner))
            case _:
                body = self.emitter.block(par.body)
        self.emitter.frame = outer
        if not (extent.is_constant and extent.constant % radix == 0):
            guard = Op("lt", (Index(expr(par.sym), I32), Index(extent, I32)), BOOL)
            body = (k.If(guard, body, span=par.span),)
        body = (k.Declare(par.sym, I32, Index(index, I32), span=par.span), *body)
        if turn is None:
            yield from body
        else:
            kind = "unroll" if par.sym in self.placement.unrolled else "serial"
            yield k.For(turn, ZERO, turns(par.extent, loop_map.digits), body, ONE, kind, span=par.span)

    def within_warp(self, keeper: Expr) -> Expr:
        """A thread that there is in the running one's warp, if not all are: who reads what is not there does not use it."""
        warp = self.nest.warp
        if (threads := self.nest.threads) % warp == 0:
            return keeper
        first = self.at.thread // warp * warp if threads > warp else ZERO
        return maximum(first, minimum(keeper, minimum(first + (warp - 1), threads - 1)))


def _is_whole(step: Step) -> bool:
    """Whether a step declares nothing for those behind it."""
    return step.threads.is_all and isinstance(step.work, Spread | Run) and isinstance(step.stmt, ir.Par | ir.Seq)


def _is_half(step: OrderedNode) -> bool:
    """Whether a step is part of a reduction before its total."""
    return isinstance(step, Step) and isinstance(step.work, Partial | Middle)
