"""What one thread has the tensor core do in tensor memory: which barriers say that it is done, who takes the columns.

    thread 0   launch …  launch …  commit done[0]          neighbours are one commit, a loop of nothing else among them
    all        wait done[0], ko % 2

All threads wait right behind a commit: so nothing that comes later has to wait for it again. Where slots rest for a turn, they
wait for the commit of the turn before, so that the next product is launched while one goes on. Between what threads move to or
from tensor memory and what is launched there they meet: a fence is ahead of each of both, and one behind each move. A warp
takes the columns when the kernel begins, and gives them back when all threads have come to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from texpr.affine.expr import ZERO, Expr, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.instr.registers import columns_of
from texpr.ir.ops.columns import AFTER, BEFORE
from texpr.ir.steps import Loop, Node, Step, Steps, leaves
from texpr.ir.steps.threads import ALL
from texpr.ir.steps.threads import ONE as FIRST
from texpr.ir.steps.work import Order as Ordering
from texpr.ir.value import Buffer, Index, Literal, Load, Op
from texpr.ir.value.types import BOOL, I32, I64, U64
from texpr.isa.instructions.tcgen05 import COLUMNS, LEAST
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.names import Names
from texpr.lowering.sync.barriers import behind_start, passing
from texpr.lowering.sync.channel.roles import Split
from texpr.lowering.sync.phases import awaited
from texpr.lowering.sync.turns import Counted, around, completed, turning
from texpr.lowering.sync.warpgroup import Run, Started, runs
from texpr.mapping.nest import Nest
from texpr.support.diagnostic import limitation
from texpr.support.record import Record, replace
from texpr.support.span import Span


class Launched(Record, eq=False):
    """One commit: of the launches `run`, each turn's at the next of the barriers `barrier`; so many commits come before it.

    With two barriers threads wait for the commit of the turn before: in turns of `loop` behind its first one with a launch, of
    which there were as many as `turn`, and for the last one behind the loop, if it has `turns`. `around`: the innermost loop.
    """

    run: Run
    barrier: Buffer
    before: Expr
    loop: Loop | None = None
    turn: Expr = ZERO
    turns: Expr = ZERO
    around: Loop | None = None

    @property
    def slots(self) -> int:
        """How many barriers there are."""
        return self.barrier.shape[0].constant

    @property
    def span(self) -> Span:
        """Where it is in the text."""
        return self.run.steps[0].stmt.span

    def wait(self, before: Expr) -> k.Stmt:
        """The wait for the commit that so many are before, or a multiple of all barriers' parities more."""
        names = dict.fromkeys(buffer.name for step in self.run.steps for buffer in _summed(step))
        covers = tuple(k.Covered("RAW", name, self.span, self.span) for name in names)
        return awaited(Load(self.barrier, (before % self.slots,)), before // self.slots, covers, self.span)

    @property
    def pair(self) -> bool:
        """Whether two blocks do it together."""
        return any(_of_pair(step) for step in self.run.steps)

    def ahead(self) -> Step:
        """The step ahead of the launches: of a pair, all of both blocks have waited for the phases before by then."""
        span, carrier = self.span, None if self.around is None else self.around.stmt.sym
        covers = (k.Covered("WAR", "the phase of a barrier", span, span, carrier),)
        meeting = (passing(covers),) if self.pair else ()
        return Step(ALL, Ordering((*meeting, k.FenceColumns(AFTER, span=span))))

    def behind(self) -> tuple[Step, ...]:
        """The steps behind the launches."""
        commit = k.CommitColumns(Load(self.barrier, (self.before % self.slots,)), self.pair, span=self.span)
        wait = self.wait(self.before)
        if self.loop is not None:
            wait = self._if(self.turn, self.wait(self.before - 1 + 2 * self.slots))
        return Step(FIRST, Ordering((commit,))), Step(ALL, Ordering((wait,)))

    def last(self) -> Step:
        """The step behind the loop."""
        assert self.loop is not None
        latest = self.before.substitute({self.loop.stmt.sym: self.loop.stmt.sym - self.turn + self.turns - 1})
        return Step(ALL, Ordering((self._if(self.turns, self.wait(latest)),)))

    def _if(self, turns: Expr, wait: k.Stmt) -> k.Stmt:
        some = Op("ge", (Index(turns, I64), Literal(1, I64)), BOOL)
        return k.If(some, (wait,), uniform=True, span=self.span)


class InColumns(Record, eq=False):
    """All of a kernel's: `launched`, by the node behind which they are committed. `word`: what has the first column that is
    taken, of `count`; `columns`: the arrays there."""

    launched: Mapping[Node, Launched]
    word: Buffer
    columns: Mapping[Buffer, int]
    thread: Expr
    warp: int

    @property
    def count(self) -> int:
        """The columns that are taken."""
        end = max(at + _columns(buffer) for buffer, at in self.columns.items())
        return max(LEAST, 1 << (end - 1).bit_length())

    @property
    def pair(self) -> bool:
        """Whether two blocks have a part of their tensor memory together."""
        return any(each.pair for each in self.launched.values())

    @property
    def paired(self) -> frozenset[Step]:
        """The steps that launch something for two blocks."""
        return frozenset(step for each in self.launched.values() if each.pair for step in each.run.steps)

    @property
    def arrays(self) -> tuple[k.Array, ...]:
        """The barriers, and the word."""
        done = (k.Array(each.barrier, k.Space.SHARED, _DONE, barrier=True) for each in self.launched.values())
        return (*done, k.Array(self.word, k.Space.SHARED, "the first column that is taken of tensor memory", barrier=True))

    @property
    def made(self) -> tuple[k.Stmt, ...]:
        """What makes the barriers."""
        every = ((each, expr(slot)) for each in self.launched.values() for slot in range(each.slots))
        return tuple(k.BarrierInit(Load(each.barrier, (slot,)), 1, span=each.span) for each, slot in every)

    def placed(self, array: k.Array) -> k.Array:
        """An array with its first column, if it has some."""
        return replace(array, at=self.columns[array.buffer]) if array.buffer in self.columns else array

    def needs(
        self, nodes: tuple[Node, ...], between: Iterable[Dependence], level: k.Level, split: Split | None
    ) -> Iterator[Dependence]:
        """Those of needs `between` threads that are left where all wait right behind what is launched; and that all have waited
        for a commit before the next one at its barrier, in later turns of the loops around. Refuses roles: a `split`."""
        if split is not None:
            raise split.refused("what one thread launches in tensor memory all threads wait for, and so roles do not go apart")
        own = {step for each in self.launched.values() for step in each.run.steps}
        there = {buffer.name for buffer in self.columns}
        for need in between:  # a lane moves columns of its own lane, in its own order
            alone = need.covered.buffer in there and is_move(need.source) and is_move(need.sink)
            if need.source not in own and not alone:
                yield replace(need, level=k.Level.CLUSTER) if need.sink in self.paired else need
        for each in (each for each in self.launched.values() if not each.pair):
            first, last = each.run.steps[0], each.run.steps[-1]
            for node in takewhile(lambda node, each=each: node is not each.run.last, around(nodes, first)):
                if isinstance(node, Loop):
                    span = first.stmt.span
                    covered = k.Covered("WAR", "the phase of a barrier", span, span, node.stmt.sym)
                    yield Dependence(last, first, node.stmt, level, covered, 1, waited=True)

    def starting(self, number: int, at: int) -> Iterator[Step]:
        """The steps ahead of a node: the `at`-th of that list."""
        yield from (each.ahead() for each in self.launched.values() if (each.run.number, each.run.first) == (number, at))

    def ended(self, node: Node) -> Iterator[Step]:
        """The steps behind a loop."""
        yield from (each.last() for each in self.launched.values() if each.loop is node)

    def begin(self, meeting: k.Stmt) -> Iterator[Step]:
        """The steps at the start, around the barrier `meeting`."""
        take = self._by_warp(k.TakeColumns(Load(self.word, (ZERO,)), self.count, self.pair))
        have = k.HaveColumns(Load(self.word, (ZERO,)))
        yield Step(ALL, Ordering((take, k.FenceColumns(BEFORE), meeting, k.FenceColumns(AFTER), have)))

    def end(self) -> Step:
        """The step at the end."""
        covers = tuple(k.Covered("WAR", each.barrier.name, each.run.steps[0].stmt.span, each.run.steps[0].stmt.span)
                       for each in self.launched.values())  # fmt: skip
        free = self._by_warp(k.FreeColumns(self.count, self.pair))
        return Step(ALL, Ordering((k.FenceColumns(BEFORE), behind_start(covers, self.pair), k.FenceColumns(AFTER), free)))

    def _by_warp(self, op: k.Stmt) -> k.Stmt:
        first = Op("lt", (Index(self.thread // self.warp, I32), Index(expr(1), I32)), BOOL)
        return k.If(first, (op,))


_DONE = "completes when what was launched before a commit is done"


def in_columns(steps: Steps, nest: Nest, started: Mapping[Step, Started], needs: Needs, names: Names) -> InColumns | None:
    """What `started` launches, if anything. Raises Limitation where it is too much for tensor memory, or cannot be counted."""
    arrays = [array for array in steps.arrays if array.space is k.Space.TENSOR]
    if not arrays:
        return None
    launched, met = dict[Node, Launched](), tuple(needs.meetings(nest, steps.body, started))
    for run in runs(steps.body, started):
        own = [step for step in run.steps if not is_copy(step)] or run.steps
        name, span = next(buffer.name for step in own for buffer in _summed(step)), run.steps[0].stmt.span
        here = Counted(run.steps[0], name, span)
        turns = turning(steps.body, here, needs.model.given, run.last)
        after = [m for m in met if m.source in run.steps and (m.sink not in started or is_copy(m.sink))]
        loop = _resting(steps.body, run, after)
        barrier = Buffer(names.name(f"{name}_done"), U64, (expr(1 if loop is None else 2),), "local", span=span)
        before = completed(steps.body, here, needs.model.given, run.last)
        outer = next(reversed(list(_loops(steps.body, run))), None)
        if loop is None:
            launched[run.last] = Launched(run, barrier, before, around=outer)
        else:
            first, end = turns[loop.stmt.sym]
            launched[run.last] = Launched(run, barrier, before, loop, loop.stmt.sym - first, end - first, outer)
    columns, end = dict[Buffer, int](), 0
    for array in arrays:
        columns[array.buffer] = end
        end += _columns(array.buffer)
    if end > COLUMNS:
        told = f"sums would need {end} columns of tensor memory, and a multiprocessor has {COLUMNS}"
        raise limitation("E0541", arrays[0].buffer.span, told, help="smaller tiles need fewer")
    word = Buffer(names.name("first_column"), U64, (expr(1),), "local")
    return InColumns(launched, word, columns, steps.thread, steps.warp)


def _columns(buffer: Buffer) -> int:
    return columns_of(buffer.dtype, buffer.shape[0].constant)


def _resting(nodes: tuple[Node, ...], run: Run, met: Sequence[Dependence]) -> Loop | None:
    """The innermost loop around launches, if whatever depends on them comes two turns later, or behind the loop."""
    loops = list(_loops(nodes, run))
    if not loops:
        return None
    inside = frozenset(leaves(loops[-1].body))
    later = (m.distance > 1 if m.carrier is loops[-1].stmt else m.carrier is not None or m.sink not in inside for m in met)
    return loops[-1] if all(later) else None


def _loops(nodes: tuple[Node, ...], run: Run) -> Iterator[Loop]:
    """The loops around launches, but for those that are launches alone."""
    every = takewhile(lambda node: node is not run.last, around(nodes, run.steps[0]))
    yield from (node for node in every if isinstance(node, Loop))


def is_copy(step: Step) -> bool:
    """Whether a step starts a copy to tensor memory."""
    use = step.stmts[0]
    return isinstance(use, ir.Instruction) and use.instr is not None and use.instr.is_copy


def is_move(step: Step) -> bool:
    """Whether lanes move columns of their own in a step."""
    return bool(step.stmts) and _moves(step.stmts[0])


def _moves(use: ir.Stmt) -> bool:
    instr = use.instr if isinstance(use, ir.Instruction) else None
    return instr is not None and not instr.is_alone and any(operand.columns for operand in instr.operands)


def moved(use: ir.Instruction, step: Step) -> tuple[Step, ...]:
    """A step that moves columns, between fences; any other one alone."""
    if not _moves(use):
        return (step,)
    behind, ahead = (Step(ALL, Ordering((k.FenceColumns(kind, span=use.span),))) for kind in (AFTER, BEFORE))
    return behind, step, ahead


def _of_pair(step: Step) -> bool:
    """Whether a step launches something for two blocks."""
    use = step.stmts[0]
    return isinstance(use, ir.Instruction) and use.instr is not None and use.instr.is_pair


def _summed(step: Step) -> Iterator[Buffer]:
    """The locals in tensor memory that a step sums up in."""
    use = step.stmts[0]
    if isinstance(use, ir.Instruction) and use.instr is not None:
        pairs = zip(use.instr.operands, use.operands, strict=True)
        yield from (load.buffer for operand, load in pairs if operand.columns and operand.is_written)
