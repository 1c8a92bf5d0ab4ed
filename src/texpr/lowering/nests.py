"""One nest becomes one kernel: axes, indices, guards, and the steps of its body with their barriers between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum, minimum
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.types import BOOL, I32
from texpr.ir.uses import loads
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value, conjunction, walk
from texpr.isa.target import Target
from texpr.lowering import barriers, lanes, points, reduce, vectors
from texpr.lowering.arena import Arena, room
from texpr.lowering.cluster import WHOLE, Cluster, each_where, only_where
from texpr.lowering.conflict import WARP
from texpr.lowering.converge import converged
from texpr.lowering.distributed import distributed, ranges
from texpr.lowering.emit import Emitter, atomic_binds, free_sums, unrolling
from texpr.lowering.lives import Lives
from texpr.lowering.names import Names
from texpr.lowering.needs import Needs
from texpr.lowering.owners import by_first, by_thread, turns
from texpr.lowering.phases import Tensors
from texpr.lowering.placement import Placement, Placer
from texpr.lowering.shuffles import Shuffles
from texpr.lowering.steps import Choice, Repeat, Step, Sync, ordered
from texpr.lowering.sync import Order, synchronise
from texpr.lowering.team import HALVES, Branch, Leaf, Loop, Team, Who, build
from texpr.mapping.bands import band
from texpr.mapping.nest import LoopMap, Nest
from texpr.relation.facts import known
from texpr.support.diagnostic import limitation
from texpr.support.record import Mutable, field
from texpr.tma.model import Copy


class Lowered(Mutable):
    """A kernel's parts, before its arguments are collected."""

    axes: tuple[k.Axis, ...]
    arrays: tuple[k.Array, ...]
    placement: Placement
    body: tuple[k.Stmt, ...]
    maps: tuple[k.TensorMap, ...] = ()
    copies: tuple[tuple[str, Copy], ...] = ()
    proof: barriers.Proof | None = None
    arena: Arena = field(default_factory=Arena)


def lower_nest(
    nest: Nest, target: Target, names: Names, needs: Needs, sizes: frozenset[Sym], lets: Mapping[Sym, Buffer]
) -> Lowered:
    """The kernel of one nest. `needs` answers what depends on what; `sizes` are known before anything runs; `lets` are values
    kept by earlier kernels."""
    return _NestLowering(nest, target, names, needs, sizes, lets).run()


class _NestLowering(Mutable):
    nest: Nest
    target: Target
    names: Names
    needs: Needs
    sizes: frozenset[Sym]
    lets: Mapping[Sym, Buffer]
    thread: Expr = ZERO
    tree: Team = field(init=False)
    emitter: Emitter = field(init=False)
    placement: Placement = field(init=False)
    reductions: dict[ir.Stmt, reduce.Reduction] = field(default_factory=dict[ir.Stmt, reduce.Reduction])
    order: Order = field(default_factory=Order)
    tensors: Tensors = field(init=False)
    blocks: tuple[Expr, ...] = ()
    cluster: Cluster = field(default_factory=Cluster)
    rank: Sym | None = None

    def run(self) -> Lowered:
        if any(m.cluster > 1 for m in self.nest.grid):
            self.cluster = Cluster.of(self.nest.grid, self.names, known(self.needs.model.given))
        if self.nest.blocks > 1:
            self.rank = self.names.sym("rank")
        axes, prelude = self._axes()
        self.tree = team = self._team()
        lives = Lives(self.needs, self.nest, team)
        grid = tuple(m.loop for m in self.nest.grid)
        atomics = atomic_binds(grid, self.nest.body)
        self.placement = Placer(
            self.nest,
            self.target,
            self.names,
            self.thread,
            {m.loop: m.loop.extent for m in self.nest.grid},
            self.sizes,
            team.replicated,
            lambda buffer: self.needs.slots(self.nest, team, buffer),
            Shuffles(self.needs, self.nest, team, atomics).lanes,
            lambda sizes: room(sizes, lives),
            lambda buffer: None if self.rank is None else distributed(self.needs, self.nest, team, buffer, self.rank),
        ).run()
        cpu = self.target.family == "cpu"
        self.emitter = Emitter(self.placement.places, self.names, simd=cpu, atomics=atomics, known=self.needs.known)
        self.emitter.loops = self.needs.loops
        self.emitter.free = free_sums(grid, self.nest.body) if cpu else frozenset()
        self.emitter.within = self._within_warp
        self.emitter.vector = None if cpu else vectors.in_lanes
        places = self.placement.places
        self.tensors = Tensors.of(team.nodes, places, self.names, self.needs, self.nest.team, self.nest.threads, self.cluster)
        if self.nest.team == 1:
            self.emitter.reduce = lanes.in_lanes(self.needs.around) if cpu else None
            body = points.around(self._tiles(), self.nest.body, self.emitter)
        else:
            self.order = synchronise(
                self.nest, team, self.placement, self.tensors, self.needs, lives, self.target, self._is_alike
            )
            body = self._steps(ordered(team.nodes, self.order))
        body = (*self._start(), *self._guarded(body), *self._finish())
        placed = map(self.tensors.aligned, self.placement.arrays)
        arrays = self.order.arena.placed((*placed, *self.emitter.arrays, *self._scratch(), *self.tensors.arrays))
        body = (*prelude, *self._let_loads(body), *body)
        maps = self.tensors.maps
        return Lowered(axes, arrays, self.placement, body, tuple(maps.found), maps.copies(), self.order.proof, self.order.arena)

    def _axes(self) -> tuple[tuple[k.Axis, ...], tuple[k.Stmt, ...]]:
        """Hardware coordinates, and the grid indices in them."""
        axes: list[k.Axis] = []
        prelude: list[k.Stmt] = []
        if self.nest.threads > 1:
            thread = self.names.sym("thread")
            self.thread = expr(thread)
            axes.append(k.Axis(thread, k.Level.BLOCK, expr(self.nest.threads)))
        blocks = self._block_coordinates(axes, prelude)
        for loop_map, block in zip(self.nest.grid, blocks, strict=True):
            if loop_map.tile > 1 and loop_map.points == 1:
                index = block * loop_map.tile + loop_map.share(self.thread, self.nest.threads)
                prelude.append(k.Declare(loop_map.loop.sym, I32, Index(index, I32), span=loop_map.loop.span))
        self.blocks = blocks
        return tuple(axes), tuple(prelude)

    def _block_coordinates(self, axes: list[k.Axis], prelude: list[k.Stmt]) -> tuple[Expr, ...]:
        syms = tuple(m.loop.sym if m.tile == 1 else self.names.sym(f"{m.loop.sym.base}_block") for m in self.nest.grid)
        extents = tuple(map(self.cluster.extent, self.nest.grid))
        if self.rank is not None:
            return self._with_rank(syms, extents, axes, prelude)
        if self.target.family == "cpu":
            axes.extend(k.Axis(s, k.Level.CORE, e) for s, e in zip(syms, extents, strict=True))
            return tuple(map(expr, syms))
        direct = 3 if len(syms) <= 3 else 2
        asked = {m.dim: place for place, m in enumerate(self.nest.grid) if m.dim}
        for place, dim in self._dimensions(asked, len(syms), direct):
            base = None if dim == "x" else self.names.sym(f"{syms[place].base}_base")
            axes.append(k.Axis(syms[place], k.Level.GRID, extents[place], dim, base))
        axes.extend(self.cluster.axes)
        folded = len(syms) - direct
        if folded > 0:
            self._fold(syms[:folded], extents[:folded], axes, prelude)
        return tuple(map(expr, syms))

    def _with_rank(
        self, syms: tuple[Sym, ...], extents: tuple[Expr, ...], axes: list[k.Axis], prelude: list[k.Stmt]
    ) -> tuple[Expr, ...]:
        """The same where blocks of a cluster share an iteration: along a dimension of their own."""
        assert self.rank is not None
        if any(m.cluster > 1 for m in self.nest.grid):
            reason = "blocks along a loop of the grid are in clusters, and so are those that share one of its iterations"
            raise limitation("E0918", self.nest.grid[0].loop.span, reason, help="one of both alone can be")
        own, blocks = self.names.sym("cluster_block"), expr(self.nest.blocks)
        cut = max(len(syms) - 1, 0)
        every, wide = (*syms[:cut], own, *syms[cut:]), (*extents[:cut], blocks, *extents[cut:])
        asked = {m.dim: place + (place >= cut) for place, m in enumerate(self.nest.grid) if m.dim}
        direct = 3 if len(every) <= 3 else 2
        for place, dim in self._dimensions(asked, len(every), direct):
            base = None if dim == "x" or place == cut else self.names.sym(f"{every[place].base}_base")
            axes.append(k.Axis(every[place], k.Level.GRID, wide[place], dim, base))
            if place == cut:
                axes.append(k.Axis(self.rank, k.Level.CLUSTER, blocks, dim))
        if len(every) > direct:
            self._fold(every[: len(every) - direct], wide[: len(every) - direct], axes, prelude)
        return tuple(map(expr, syms))

    def _dimensions(self, asked: Mapping[str, int], count: int, direct: int) -> Iterator[tuple[int, str]]:
        """Which of `count` loops has which dimension of the grid: as asked for, then x to the innermost, and so on."""
        if asked and count > 3:
            reason = f"a grid has three dimensions, and {count} loops are to share it"
            raise limitation("E0910", self.nest.grid[0].loop.span, reason)
        free = (place for place in range(count - 1, count - 1 - direct, -1) if place >= 0 and place not in asked.values())
        for dim in "xyz":
            place = asked[dim] if dim in asked else next(free, None)
            if place is not None:
                yield place, dim

    def _fold(self, syms: Sequence[Sym], extents: Sequence[Expr], axes: list[k.Axis], prelude: list[k.Stmt]) -> None:
        """More loops than the grid has dimensions: the outer ones are digits of z."""
        total = ONE
        for extent in extents:
            total = total * extent
        z = self.names.sym("outer_blocks")
        axes.append(k.Axis(z, k.Level.GRID, total, "z", self.names.sym("outer_base")))
        rest = expr(z)
        for number, (sym, count) in enumerate(zip(reversed(syms), reversed(extents), strict=True)):
            last = number == len(syms) - 1
            extent = ONE if count is ZERO else count  # no block runs then
            prelude.append(k.Declare(sym, I32, Index(rest if last else rest % extent, I32)))
            if not last:
                left = self.names.sym("outer_left")
                prelude.append(k.Declare(left, I32, Index(rest // extent, I32)))
                rest = expr(left)

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
        pairs = zip(self.nest.grid, self.blocks, strict=True)
        tiles = (points.Tile(m, block * m.tile) for m, block in pairs if m.points > 1)
        return tuple(sorted(tiles, key=lambda tile: tile.map.lane))

    def _team(self) -> Team:
        if self.nest.team == 1:
            return Team((), frozenset())
        conditions = [s for s in ir.walk(self.nest.body) if isinstance(s, ir.If)]
        return build(self.nest, {s: self.names.sym("decided") for s in conditions})

    def _is_alike(self, node: Loop | Branch) -> bool:
        """Whether all blocks of a cluster surely run a node alike. What each thread keeps a copy of is not known to be."""
        if self.rank is not None and isinstance(node, Branch):
            kept = [place.register for place in self.placement.places.values() if place.register is not None]
            own = [array.buffer for array in self.placement.arrays if array.space is not k.Space.CLUSTER]
            parts = tuple(walk(self.emitter.value(node.stmt.condition)))
            known = not any(isinstance(part, Ref) and part.sym in kept for part in parts)
            return known and not any(isinstance(part, Load) and part.buffer in own for part in parts)
        return self.cluster.is_alike(node)

    def _start(self) -> Iterator[k.Stmt]:
        """The barriers of copies, made by one thread before any other needs them; it asks for the maps, too."""
        made, asked = self.tensors.start(), self.tensors.maps.prefetches()
        if made or asked:
            yield k.If(self._leads(), (*asked, *made))
        if made:
            yield k.Barrier(k.Level.CLUSTER if self.tensors.shared else k.Level.BLOCK, self.tensors.made)

    def _finish(self) -> Iterator[k.Stmt]:
        """Copies that a thread started do not outlive it."""
        ended = self.tensors.finish()
        if ended:
            yield k.If(self._leads(), ended)

    def _scratch(self) -> Iterator[k.Array]:
        for reduction in self.reductions.values():
            for array in (array for arrays in reduction.scratch for array in arrays):
                yield k.Array(array, k.Space.SHARED, "partial values of the warps of one block")
            for array in (array for arrays in reduction.joint for array in arrays):
                yield k.Array(array, k.Space.CLUSTER, "partial values of the blocks of a cluster")

    def _let_loads(self, body: tuple[k.Stmt, ...]) -> Iterator[k.Stmt]:
        used = k.symbols(body)
        for sym, buffer in self.lets.items():
            if sym in used:
                yield k.Declare(sym, buffer.dtype, Load(buffer, ()), span=buffer.span)

    def _steps(self, steps: tuple[Step, ...]) -> tuple[k.Stmt, ...]:
        """The statements of steps; what the first thread alone does, step after step, stands under one test."""
        found: list[k.Stmt] = []
        leading: list[k.Stmt] = []
        for at, step in enumerate(steps):
            if isinstance(step, Leaf) and step.who is Who.LEADER:
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

    def _step(self, step: Step, rest: tuple[Step, ...]) -> Iterator[k.Stmt]:
        match step:
            case Leaf():
                yield from self._kept_out(step, self._leaf(step, rest))
            case Sync(does):
                yield from does
            case Repeat(stmt, body):
                yield self._loop(stmt, self._steps(body))
            case Choice(stmt, decided, then, orelse):
                yield k.If(Ref(decided, BOOL), self._steps(then), self._steps(orelse), uniform=True, span=stmt.span)

    def _kept_out(self, node: Leaf, made: Iterator[k.Stmt]) -> Iterator[k.Stmt]:
        """A step as blocks that fill up a cluster run it too: not at all, but for what blocks do together."""
        runs = self.cluster.runs
        if runs is None:
            return made
        if isinstance(node.stmt, ir.If) and self.cluster.alike(node.stmt.condition):
            return made
        return (
            only_where(runs, made) if isinstance(node.stmt, ir.Par | ir.Seq) and node.who in WHOLE else each_where(runs, made)
        )

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

    def _leaf(self, leaf: Leaf, rest: tuple[Step, ...]) -> Iterator[k.Stmt]:
        self.emitter.frame = by_thread(self.nest.team)
        return converged(self._done(leaf, rest), self.names)

    def _done(self, leaf: Leaf, rest: tuple[Step, ...]) -> Iterator[k.Stmt]:
        stmt = leaf.stmt
        match leaf.who, stmt:
            case Who.SPREAD, ir.Par():
                idle = self._idle(stmt)
                self.emitter.copying = leaf in self.order.copying
                body = tuple(self._spread(stmt))
                yield from body if idle is None else (k.If(idle, body, span=stmt.span),)
                self.emitter.copying = False
            case Who.PARTIAL, ir.Par():
                reduction = self.reductions[stmt] = reduce.start(leaf, self.nest, self.rank, self.emitter)
                own = self.thread if self.rank is not None else self._team_thread()
                yield from reduce.partial(leaf, reduction, self.nest, own, self.emitter, self._spread)
            case Who.MIDDLE, ir.Par():
                yield from reduce.middle(leaf, self.reductions[stmt], self.thread, self.emitter)
            case Who.TOTAL, ir.Par():
                yield from reduce.total(leaf, self.reductions[stmt], self.nest, self._leads(), self.emitter)
            case Who.END, _:
                pass
            case _, ir.If():
                decided = self.tree.decided[stmt]
                yield from self.emitter.fetch(stmt)
                yield k.Declare(decided, BOOL, self.emitter.value(stmt.condition), span=stmt.span)
            case _, ir.New():
                after = tuple(step.stmt for step in rest if not isinstance(step, Sync) and not _is_half(step))
                yield from self.emitter.new(stmt, after)
            case _:
                yield from self.emitter.stmt(stmt)

    def _team_thread(self) -> Expr:
        if self.rank is not None:
            return expr(self.rank) * self.nest.threads + self.thread
        return self.thread if self.nest.team == self.nest.threads else self.thread % self.nest.team

    def _plain(self, value: Expr) -> Expr:
        """An index as the coordinates of threads have it."""
        if self.rank is None:
            return value
        (thread,) = self.thread.syms()
        return Simplifier(ranges(thread, self.nest.threads, self.rank, self.nest.blocks))(value)

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
        self.emitter.frame = outer.also(par, loop_map, turn, team)
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
            yield k.For(turn, ZERO, turns(par, loop_map), body, ONE, kind, span=par.span)

    def _within_warp(self, keeper: Expr) -> Expr:
        """A thread that there is in the running one's warp, if not all are: who reads what is not there does not use it."""
        if (threads := self.nest.threads) % WARP == 0:
            return keeper
        first = self.thread // WARP * WARP if threads > WARP else ZERO
        return maximum(first, minimum(keeper, minimum(first + (WARP - 1), threads - 1)))


def _is_half(step: Step) -> bool:
    """Whether a step is part of a reduction before its total."""
    return isinstance(step, Leaf) and step.who in HALVES
