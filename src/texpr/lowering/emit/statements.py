"""Emission of the statements of a kernel from its steps.

Before, a step: thread set, kind of work, and statements of the program.

    all spread reads x writes t {
        par 64 |j| {
            t[j] = (2.0:f32 * x[i, j])
        }
    }

After, with `dealt j by 64:1` and `place t: f32[64] in t`, in a block of 64 threads:

    let j: i32 = i32(thread)
    t[j] = (2.0:f32 * x[i, j])
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum, minimum
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.kernel.roles import condition
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Alternate, Apart
from texpr.ir.program.uses import loads
from texpr.ir.steps import AtBarrier, Branch, Dealt, InGroup, Loop, Node, Part, Step, Steps, program
from texpr.ir.steps.digits import radix, share, turns
from texpr.ir.steps.work import Decide, End, Half, Issue, Middle, Order, Partial, Points, Run, Spread, Together
from texpr.ir.value import Index, Literal, Op, Ref, Value, conjunction
from texpr.ir.value.types import BOOL, I32
from texpr.lowering.build.unrolling import unrolling
from texpr.lowering.emit import coarsening, reduce
from texpr.lowering.emit.converge import converged
from texpr.lowering.emit.emitter import Emitter
from texpr.lowering.emit.ragged import each_where, only_where
from texpr.lowering.engine.instruct import by_first_warps
from texpr.lowering.names import Names
from texpr.lowering.place.distributed import ranges
from texpr.lowering.place.owners import by_first, by_thread
from texpr.mapping.bands import band
from texpr.support.record import Mutable

FEW = 8
"""Turns of a distributed loop, all of which every thread has, that are counted by themselves: compilers unroll such a loop."""


class Statements(Mutable):
    """Emits the statements of one kernel."""

    form: Steps
    names: Names
    emitter: Emitter
    leader: int = 0
    around: Sym | None = None
    """The loop around whose iterations groups take in turn."""
    is_own: bool = False
    """Whether what is emitted is of a group of those that take turns, whose threads are counted from 0."""

    def all(self) -> tuple[k.Stmt, ...]:
        """The statements of the whole kernel, after the declarations at its start."""
        form = self.form
        return (*self._steps(form.begin), *self._guarded(self._steps(form.body)), *self._steps(form.end))

    def _guarded(self, body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
        """Guards `body` against surplus iterations of the grid."""
        tests: list[Value] = []
        for along in self.form.grid:
            extent = along.loop.extent
            divides = extent.is_constant and extent.constant % along.tile == 0
            if along.tile > 1 and along.points == 1 and not divides:
                tests.append(_is_inside(along.loop))
        if self.form.team == 1 and self.runs is not None:
            tests.append(self.runs)
        condition = conjunction(tests)
        return body if condition is None else (k.If(condition, body, uniform=self.form.team > 1),)

    @property
    def runs(self) -> Value | None:
        """The condition that a block has an iteration, if some blocks only complete a cluster."""
        dims = {axis.sym: axis.dim for axis in self.form.axes if axis.level is k.Level.GRID}
        ragged = sorted((a for a in self.form.grid if a.ragged), key=lambda along: dims[along.block])
        return conjunction([_is_inside(along.loop) for along in ragged])

    def _tiles(self) -> tuple[coarsening.Tile, ...]:
        """The grid loops with several points for each grid iteration, that for vector lanes innermost."""
        tiles = (coarsening.Tile(a, expr(a.block) * a.tile) for a in self.form.grid if a.points > 1)
        return tuple(sorted(tiles, key=lambda tile: tile.along.lane))

    def _steps(self, steps: tuple[Node, ...]) -> tuple[k.Stmt, ...]:
        """The statements of steps; consecutive steps of the first thread alone share one test."""
        found: list[k.Stmt] = []
        leading: list[k.Stmt] = []
        for at, step in enumerate(steps):
            if isinstance(step, Step) and step.threads.is_one and (step.threads.first or not isinstance(step.work, Order)):
                self.leader = step.threads.first  # with a number, it is of a role: it waits and arrives alone, too
                issued = tuple(self._alone(step))
                if not any(isinstance(stmt, k.Shuffle) for stmt in issued):
                    leading.extend(issued if isinstance(step.completion, AtBarrier) else only_where(self.runs, issued))
                    continue
                made = self._kept_out(step, converged(issued, self.names, (self._leads(),)))  # all lanes take part
            else:
                made = self._step(step, steps[at + 1 :])
            self._flush(leading, found)
            found.extend(made)
        self._flush(leading, found)
        self.leader = 0
        return tuple(found)

    def _alone(self, step: Step) -> Iterator[k.Stmt]:
        """The statements of a step that the first thread executes alone."""
        self.emitter.frame = by_first()
        yield from step.work.does if isinstance(step.work, Issue | Order | Together) else self.emitter.stmt(step.stmt)

    def _step(self, step: Node, rest: tuple[Node, ...]) -> Iterator[k.Stmt]:
        match step:
            case Step(work=Points()):
                yield from coarsening.around(self._tiles(), step.stmts, self.emitter)
            case Step(work=Together(does)):
                yield from only_where(
                    self.runs, (by_first_warps(op, self._team_thread()) if not self.form.extra else op for op in does)
                )
            case Step(work=Order(does)):
                yield from does if step.threads.is_all else (k.If(self._leads(), does),)
            case Step():
                yield from self._kept_out(step, self._leaf(step, rest))
            case Loop(stmt, body):
                outer, self.around = self.around, stmt.sym if mark(stmt, Alternate) else self.around
                yield self._loop(stmt, self._steps(body))
                self.around = outer
            case Part(role, body):
                form = self.form
                is_in = condition(role, form.thread, form.threads + form.extra, form.warp)
                assert is_in is not None
                yield k.If(is_in, self._by_groups(role, body), role=role)
            case Branch(stmt, decided, then, orelse):
                yield k.If(Ref(decided, BOOL), self._steps(then), self._steps(orelse), uniform=True, span=stmt.span)

    def _by_groups(self, role: k.Role, body: tuple[Node, ...]) -> tuple[k.Stmt, ...]:
        """The steps of a role. Where groups of it take iterations in turn, the one whose turn it is does what is in these."""
        form = self.form
        self.is_own = form.groups > 1 and role.first * form.warp < form.threads
        made = self._steps(body)
        if self.is_own and self.around is not None and not all(map(k.declares, made)):
            group, turn = form.thread // form.team, expr(self.around) % form.groups
            made = (k.If(Op("eq", (Index(group, I32), Index(turn, I32)), BOOL), made),)
        self.is_own = False
        return made

    def _kept_out(self, node: Step, made: Iterator[k.Stmt]) -> Iterator[k.Stmt]:
        """The statements of a step under the guard of surplus blocks, except for joint operations of blocks."""
        runs = self.runs
        if runs is None or (isinstance(node.work, Decide) and node.work.alike):
            return made
        return only_where(runs, made) if _is_whole(node) else each_where(runs, made)

    def _flush(self, leading: list[k.Stmt], found: list[k.Stmt]) -> None:
        if leading:
            found.append(k.If(self._leads(), tuple(leading), span=leading[0].span))
            leading.clear()

    def _leads(self) -> Value:
        return Op("eq", (Index(self._team_thread(), I32), Literal(self.leader, I32)), BOOL)

    def _loop(self, loop: ir.Seq, body: tuple[k.Stmt, ...]) -> k.For:
        """A uniform loop."""
        factor = unrolling(loop)
        kind = "serial" if factor is None and loop.sym not in self.form.unrolled else "unroll"
        apart = mark(loop, Apart) or Apart(0, 0)
        ends = (apart.first, apart.last) if kind == "serial" else (0, 0)
        return k.For(loop.sym, ZERO, loop.extent, body, ONE, kind, (), True, loop.span, factor or 0, *ends)

    def _leaf(self, leaf: Step, rest: tuple[Node, ...]) -> Iterator[k.Stmt]:
        self.emitter.frame = by_thread(self.form.team)
        return converged(self._done(leaf, rest), self.names)

    def _done(self, leaf: Step, rest: tuple[Node, ...]) -> Iterator[k.Stmt]:
        match leaf.work:
            case Half() as half:
                yield from self._half(leaf, half)
            case End():
                pass
            case _:
                yield from self._run(leaf, rest)

    def _half(self, leaf: Step, half: Half) -> Iterator[k.Stmt]:
        stmt, form, emitter = leaf.stmt, self.form, self.emitter
        assert isinstance(stmt, ir.Par)
        reduction = next(each for each in form.reductions if each.sym == stmt.sym)
        match half:
            case Partial():
                own = form.thread if form.rank is not None else self._team_thread()
                yield from reduce.partial(stmt, half, reduction, form, own, emitter, self._spread)
            case Middle():
                assert form.rank is not None
                yield from reduce.middle(stmt, half, reduction, form.rank, form.thread, emitter)
            case _:
                yield from reduce.total(stmt, half, reduction, self._leads(), emitter)

    def _run(self, leaf: Step, rest: tuple[Node, ...]) -> Iterator[k.Stmt]:
        stmt = leaf.stmt
        match leaf.work, stmt:
            case Spread(), ir.Par():
                idle = self._idle(stmt)
                self.emitter.copying = isinstance(leaf.completion, InGroup)
                body = tuple(self._spread(stmt))
                yield from body if idle is None else (k.If(idle, body, span=stmt.span),)
                self.emitter.copying = False
            case Decide(decided), ir.If():
                yield from self.emitter.fetch(stmt)
                yield k.let(decided, self.emitter.value(stmt.condition), stmt.span)
            case _, ir.New():
                yield from self.emitter.new(stmt, program(rest))
            case _:
                yield from self.emitter.stmt(stmt)

    def _team_thread(self) -> Expr:
        form = self.form
        if form.rank is not None:
            return expr(form.rank) * form.threads + form.thread
        if form.groups > 1 and not self.is_own:
            return form.thread
        return form.thread if form.team == form.threads else form.thread % form.team

    def _plain(self, value: Expr) -> Expr:
        """An index in terms of thread coordinates."""
        form = self.form
        if form.rank is None:
            return value
        (thread,) = form.thread.syms()
        return Simplifier(ranges(thread, form.threads, form.rank, form.blocks))(value)

    def _idle(self, par: ir.Par) -> Value | None:
        """The threads that execute a band which does not use every digit of the thread number: those whose other digits are
        0."""
        dealt = self.form.dealt
        used = {(d.radix, d.stride) for p in band(par)[0] if p.sym in dealt for d in dealt[p.sym].digits}
        if prod(side for side, _ in used) == self.form.team:
            return None
        return conjunction(
            [
                Op("eq", (Index(self._plain(self._team_thread() // stride % side), I32), Index(ZERO, I32)), BOOL)
                for side, stride in self.form.digits
                if (side, stride) not in used
            ]
        )

    def _spread(self, par: ir.Par) -> Iterator[k.Stmt]:
        """A distributed loop: each thread executes the iterations with its own digit."""
        dealt = self.form.dealt[par.sym]
        if self._touches_lanes(par):
            yield from self._in_turns(par, dealt)
            return
        body = self._inside(par, dealt)
        digit = self._plain(share(dealt.digits, self._team_thread(), self.form.team))
        extent, side = par.extent, radix(dealt.digits)
        if extent.is_constant and extent.constant <= side:
            yield k.let(par.sym, digit, par.span)
            if extent.constant == side:
                yield from body
            else:
                yield k.If(_is_inside(par), body, span=par.span)
        elif extent.is_constant and extent.constant % side == 0 and extent.constant <= FEW * side:
            turn = self.names.sym("turn")
            index = k.let(par.sym, digit + expr(turn) * side, par.span)
            yield k.For(turn, ZERO, expr(extent.constant // side), (index, *body), ONE, span=par.span)
        else:
            yield k.For(par.sym, digit, extent, body, expr(side), span=par.span)

    def _inside(self, par: ir.Par, dealt: Dealt) -> tuple[k.Stmt, ...]:
        """The body of a distributed loop, which may contain another one."""
        match par.body:
            case (ir.Par() as inner,) if (other := self.form.dealt.get(inner.sym)) is not None and other.meets is dealt.meets:
                return tuple(self._spread(inner))
            case _:
                return self.emitter.block(par.body)

    def _touches_lanes(self, par: ir.Par) -> bool:
        """Whether a loop accesses arrays in lanes."""
        kept = {buffer for buffer, place in self.form.places if place.dealt is not None}
        return bool(kept) and any(load.buffer in kept for stmt in ir.walk(par.body) for load in loads(stmt))

    def _in_turns(self, par: ir.Par, dealt: Dealt) -> Iterator[k.Stmt]:
        """A distributed loop that all lanes execute equally often, so that slots are the same in all of them."""
        extent, side, team = par.extent, radix(dealt.digits), self.form.team
        turn = None if extent.is_constant and extent.constant <= side else self.names.sym("turn")
        index = share(dealt.digits, self._team_thread(), team) + (expr(turn) * side if turn is not None else ZERO)
        outer = self.emitter.frame
        self.emitter.frame = outer.also(par, dealt.digits, turn, team)
        body = self._inside(par, dealt)
        self.emitter.frame = outer
        if not (extent.is_constant and extent.constant % side == 0):
            body = (k.If(_is_inside(par), body, span=par.span),)
        body = (k.let(par.sym, index, par.span), *body)
        if turn is None:
            yield from body
        else:
            kind = "unroll" if par.sym in self.form.unrolled else "serial"
            yield k.For(turn, ZERO, turns(par.extent, dealt.digits), body, ONE, kind, span=par.span)

    def within_warp(self, keeper: Expr) -> Expr:
        """An existing thread in the running one's warp, if that is partial: a value from a missing thread is not used."""
        warp = self.form.warp
        if (threads := self.form.threads) % warp == 0:
            return keeper
        first = self.form.thread // warp * warp if threads > warp else ZERO
        return maximum(first, minimum(keeper, minimum(first + (warp - 1), threads - 1)))


def _is_whole(step: Step) -> bool:
    """Whether a step declares nothing for later steps."""
    return step.threads.is_all and isinstance(step.work, Spread | Run) and isinstance(step.stmt, ir.Par | ir.Seq)


def _is_inside(loop: ir.Par) -> Value:
    """The condition that the index of a loop is in its range."""
    return Op("lt", (Index(expr(loop.sym), I32), Index(loop.extent, I32)), BOOL)
