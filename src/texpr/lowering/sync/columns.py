"""What one thread has the tensor core do in tensor memory: which barriers say that it is done, who takes the columns.

    thread 0   launch …  launch …  commit done[0]          neighbours are one commit, a loop of nothing else among them
    all        wait done[0], ko % 2

All threads wait right behind a commit: so nothing that comes later has to wait for it again. Between what threads move to or
from tensor memory and what is launched there they meet: a fence is ahead of each of both, and one behind each move. A warp
takes the columns when the kernel begins, and gives them back when all threads have come to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from texpr.affine.expr import ZERO, Expr, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.ops.columns import AFTER, BEFORE
from texpr.ir.steps import Loop, Node, Step, Steps
from texpr.ir.steps.threads import ALL
from texpr.ir.steps.threads import ONE as FIRST
from texpr.ir.steps.work import Order as Ordering
from texpr.ir.value import Buffer, Index, Load, Op
from texpr.ir.value.types import BOOL, I32, U64
from texpr.isa.instructions.tcgen05 import COLUMNS, LEAST
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.names import Names
from texpr.lowering.sync.barriers import behind_start
from texpr.lowering.sync.phases import awaited
from texpr.lowering.sync.roles import Split
from texpr.lowering.sync.turns import Counted, around, completed
from texpr.lowering.sync.warpgroup import Run, Started, runs
from texpr.support.diagnostic import limitation
from texpr.support.record import Record, replace


class Launched(Record, eq=False):
    """One commit: of the launches `run`, at the only barrier of `barrier`, before which so many phases of it are complete."""

    run: Run
    barrier: Buffer
    completed: Expr

    @property
    def at(self) -> Load:
        """Its barrier."""
        return Load(self.barrier, (ZERO,))

    def ahead(self) -> Step:
        """The step ahead of the launches."""
        return Step(ALL, Ordering((k.FenceColumns(AFTER, span=self.run.steps[0].stmt.span),)))

    def behind(self) -> tuple[Step, ...]:
        """The steps behind the launches."""
        span = self.run.steps[0].stmt.span
        names = dict.fromkeys(buffer.name for step in self.run.steps for buffer in _summed(step))
        covers = tuple(k.Covered("RAW", name, span, span) for name in names)
        wait = awaited(self.at, self.completed, covers, span)
        return Step(FIRST, Ordering((k.CommitColumns(self.at, span=span),))), Step(ALL, Ordering((wait,)))


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
        end = max(at + buffer.shape[0].constant for buffer, at in self.columns.items())
        return max(LEAST, 1 << (end - 1).bit_length())

    @property
    def arrays(self) -> tuple[k.Array, ...]:
        """The barriers, and the word."""
        done = (k.Array(each.barrier, k.Space.SHARED, _DONE, barrier=True) for each in self.launched.values())
        return (*done, k.Array(self.word, k.Space.SHARED, "the first column that is taken of tensor memory", barrier=True))

    @property
    def made(self) -> tuple[k.Stmt, ...]:
        """What makes the barriers."""
        return tuple(k.BarrierInit(each.at, 1, span=each.run.steps[0].stmt.span) for each in self.launched.values())

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
        yield from (need for need in between if need.source not in own)
        for each in self.launched.values():
            first, last = each.run.steps[0], each.run.steps[-1]
            for node in takewhile(lambda node, each=each: node is not each.run.last, around(nodes, first)):
                if isinstance(node, Loop):
                    span = first.stmt.span
                    covered = k.Covered("WAR", "the phase of a barrier", span, span, node.stmt.sym)
                    yield Dependence(last, first, node.stmt, level, covered, 1, waited=True)

    def starting(self, number: int, at: int) -> Iterator[Step]:
        """The steps ahead of a node: the `at`-th of that list."""
        yield from (each.ahead() for each in self.launched.values() if (each.run.number, each.run.first) == (number, at))

    def begin(self, meeting: k.Stmt) -> Iterator[Step]:
        """The steps at the start, around the barrier `meeting`."""
        take = self._by_warp(k.TakeColumns(Load(self.word, (ZERO,)), self.count))
        have = k.HaveColumns(Load(self.word, (ZERO,)))
        yield Step(ALL, Ordering((take, k.FenceColumns(BEFORE), meeting, k.FenceColumns(AFTER), have)))

    def end(self) -> Step:
        """The step at the end."""
        covers = tuple(k.Covered("WAR", each.barrier.name, each.run.steps[0].stmt.span, each.run.steps[0].stmt.span)
                       for each in self.launched.values())  # fmt: skip
        free = self._by_warp(k.FreeColumns(self.count))
        return Step(ALL, Ordering((k.FenceColumns(BEFORE), behind_start(covers, False), k.FenceColumns(AFTER), free)))

    def _by_warp(self, op: k.Stmt) -> k.Stmt:
        first = Op("lt", (Index(self.thread // self.warp, I32), Index(expr(1), I32)), BOOL)
        return k.If(first, (op,))


_DONE = "completes when what was launched before a commit is done"


def in_columns(steps: Steps, started: Mapping[Step, Started], given: Sequence[Expr], names: Names) -> InColumns | None:
    """What `started` launches, if anything. Raises Limitation where it is too much for tensor memory, or cannot be counted."""
    arrays = [array for array in steps.arrays if array.space is k.Space.TENSOR]
    if not arrays:
        return None
    launched: dict[Node, Launched] = {}
    for run in runs(steps.body, started):
        name = next(buffer.name for step in run.steps for buffer in _summed(step))
        barrier = Buffer(names.name(f"{name}_done"), U64, (expr(1),), "local", span=run.steps[0].stmt.span)
        here = Counted(run.steps[0], name, run.steps[0].stmt.span)
        launched[run.last] = Launched(run, barrier, completed(steps.body, here, given, run.last))
    columns, end = dict[Buffer, int](), 0
    for array in arrays:
        columns[array.buffer] = end
        end += array.buffer.shape[0].constant
    if end > COLUMNS:
        told = f"sums would need {end} columns of tensor memory, and a multiprocessor has {COLUMNS}"
        raise limitation("E0541", arrays[0].buffer.span, told, help="smaller tiles need fewer")
    word = Buffer(names.name("first_column"), U64, (expr(1),), "local")
    return InColumns(launched, word, columns, steps.thread, steps.warp)


def moved(use: ir.Instruction, step: Step) -> tuple[Step, ...]:
    """A step that moves columns, between fences; any other one alone."""
    instr = use.instr
    if instr is None or instr.is_alone or not any(operand.columns for operand in instr.operands):
        return (step,)
    behind, ahead = (Step(ALL, Ordering((k.FenceColumns(kind, span=use.span),))) for kind in (AFTER, BEFORE))
    return behind, step, ahead


def _summed(step: Step) -> Iterator[Buffer]:
    """The locals in tensor memory that a step sums up in."""
    use = step.stmts[0]
    if isinstance(use, ir.Instruction) and use.instr is not None:
        pairs = zip(use.instr.operands, use.operands, strict=True)
        yield from (load.buffer for operand, load in pairs if operand.columns and operand.is_written)
