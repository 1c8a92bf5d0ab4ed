"""Copies of long runs by an engine, without a map, and the groups of those that go out of shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from texpr.affine.expr import Expr, expr
from texpr.ir.operation import Agent, Awaits, Brings, Closes, Group, Joins, Moved, Operation
from texpr.ir.operation.covered import Covered
from texpr.ir.operation.form import Covers, Flag, Indexed, Maybe, Number, Verb, Word, barrier, reads, writes
from texpr.ir.operation.tensor_map import combined_as, element
from texpr.ir.ops.engine import travelling, wrong_combination, wrong_run
from texpr.ir.ops.phases import BarrierWait
from texpr.ir.value import Load
from texpr.isa.cuda import TMA
from texpr.isa.engine import CHUNK

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing


def bulk_copy_is_of_one_run(stmt: Stmt, at: Place) -> Iterator[str]:
    """From a buffer of the kernel to a shared array, whose barrier it arrives at, or back; in multiples of 16 bytes."""
    if not isinstance(stmt, CopyBulk):
        return
    size = stmt.count * stmt.source.dtype.bytes
    inward = stmt.target.buffer not in at.kernel.buffers
    near, far = (stmt.target, stmt.source) if inward else (stmt.source, stmt.target)
    if size <= 0 or size % CHUNK:
        yield f"{stmt.count} elements of {stmt.source.dtype} are {size} bytes, no multiple of {CHUNK}"
    if near.dtype != far.dtype:
        yield f"{near.buffer.name} holds {near.dtype}, {far.buffer.name} {far.dtype}"
    if far.buffer not in at.kernel.buffers:
        yield f"{far.buffer.name} is not in global memory"
    elif far.buffer.role != "local" and (far.buffer.align or far.dtype.bytes) % CHUNK:
        yield f"{far.buffer.name} need not begin at a multiple of {CHUNK} bytes"
    if not inward and far.buffer.name not in at.kernel.written:
        yield f"{far.buffer.name} is not said to be written"
    if inward is (stmt.barrier is None):
        yield "a copy to shared memory arrives at a barrier, and no other does"
    if inward and stmt.reduce is not None:
        yield "a copy to shared memory combines nothing with what is there"
    yield from _counted_right(stmt)
    yield from wrong_run(near, size, CHUNK, at)


def _counted_right(stmt: CopyBulk) -> Iterator[str]:
    """What is wrong with the number of elements that a kernel computes."""
    if stmt.exactly is None or not stmt.exactly.is_constant:
        return
    count = stmt.exactly.constant
    if not 0 < count <= stmt.count or count * stmt.source.dtype.bytes % CHUNK:
        yield f"{count} of {stmt.count} elements of {stmt.source.dtype} are no multiple of {CHUNK} bytes, or not among them"


def run_is_combined_by_the_engine(stmt: Stmt, at: Place) -> Iterator[str]:
    """The engine combines by these operations, of these types."""
    if isinstance(stmt, CopyBulk) and stmt.reduce is not None:
        kind = travelling(combined_as(stmt.reduce, stmt.source.dtype), element(stmt.source.dtype))
        yield from wrong_combination(stmt.reduce, stmt.source, kind)


def run_is_waited_for(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel that starts copies waits for them somewhere; whether in time, the emulator sees."""
    if isinstance(stmt, CopyBulk):
        if stmt.barrier is None and not at.has(WaitBulk):
            yield "the kernel waits for no stores of tiles"
        if stmt.barrier is not None and not at.has(BarrierWait):
            yield "the kernel waits for no copies of tiles"


def groups_are_there_and_some_are_left(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel that waits for groups makes some; and a number of groups is not negative."""
    if isinstance(stmt, WaitBulk):
        if not at.has(CommitBulk):
            yield "the kernel commits no stores of tiles"
        if stmt.pending < 0:
            yield f"{stmt.pending} groups cannot be left"


class CopyBulk(Operation, eq=False):
    """Starts a copy of `count` consecutive elements (16 bytes or a multiple, aligned so), without a map.

    To a shared array its bytes arrive at `barrier`, as in `CopyTensor`; from one there is none, and it is waited for as is a
    `StoreTensor`: until a `WaitBulk` with `read` nobody writes the source, and until one without it nobody touches the target.

    With `exactly` only that many elements are read, written and counted, which the kernel computes: more than 0, at most
    `count`, and whole 16 bytes as well. With `reduce`, as in `StoreTensor`, each element of the target becomes its combination
    with that of the source, at once each, in no order among such copies; an f32 that is subnormal, before or after, counts as
    zero of its sign (PTX ISA, "cp.reduce.async.bulk").
    """

    FORM = (
        Word("bulk"),
        Verb("reduce", some="reduce"),
        writes("target"),
        Word("="),
        reads("source"),
        Word("count"),
        Number("count"),
        Maybe("exactly", None, "exactly", (Indexed("exactly"),)),
        Maybe("barrier", None, "arrives", (barrier("barrier"),)),
    )
    RULES = (bulk_copy_is_of_one_run, run_is_combined_by_the_engine, run_is_waited_for)
    AGENT = Agent.ENGINE

    target: Load
    source: Load
    count: int
    barrier: Load | None = None
    reduce: str | None = None
    exactly: Expr | None = None

    @property
    def by(self) -> str:
        """As a schedule calls it."""
        return "bulk"

    @property
    def needs(self) -> tuple[str, ...]:
        """The engine that copies tiles, and what came with it."""
        return (TMA,)

    @property
    def tiles(self) -> tuple[Load, ...]:
        """What of the kernel's own memory the engine may move."""
        return (self.target, self.source)

    def completion(self, maps: Mapping[str, TensorMap]) -> Brings | Joins:
        """Inward it brings bytes to a barrier; outward it is of a group."""
        if self.barrier is None:
            return Joins(Group.BULK)
        count = expr(self.count) if self.exactly is None else self.exactly
        return Brings(self.barrier, count * self.source.dtype.bytes)

    def moved(self, maps: Mapping[str, TensorMap]) -> Moved:
        """Its elements."""
        width = self.source.dtype.bytes
        exactly = None if self.exactly is None else self.exactly * width
        return Moved("bulk", self.source.buffer, self.target.buffer, self.count * width, exactly=exactly, reduce=self.reduce)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call."""
        ends = f"{to.place(self.target)}, {to.place(self.source)}"
        barrier = "" if self.barrier is None else f", {to.place(self.barrier)}"
        verb = "load" if self.barrier is not None else "store" if self.reduce is None else f"reduce_{self.reduce}"
        if self.exactly is not None:
            yield f"tx_{verb}_bulk({ends}{barrier}, {to.index(self.exactly)});"
        else:
            yield f"tx_{verb}_bulk<{self.count}>({ends}{barrier});"

    def does(self, effects: Effects) -> None:
        """Moves them later."""
        effects.sends(self)


class CommitBulk(Operation, eq=False):
    """The stores of tiles that this thread started since its last commit become one group."""

    FORM = (Word("commit_bulk"),)

    @property
    def needs(self) -> tuple[str, ...]:
        """The engine that copies tiles, and what came with it."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Closes:
        """It makes the group."""
        return Closes(Group.BULK)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call."""
        yield "tx_commit_bulk();"


class WaitBulk(Operation, eq=False):
    """Waits until at most `pending` of this thread's groups of stores, the latest ones, are unfinished.

    With `read` they need only have read their tiles, which may then be written again. `covers` lists why.
    """

    FORM = (Word("wait_bulk"), Number("pending"), Flag("read"), Covers("covers"))
    RULES = (groups_are_there_and_some_are_left,)

    pending: int
    read: bool = False
    covers: tuple[Covered, ...] = ()

    @property
    def waits_for(self) -> tuple[Covered, ...]:
        """Why it is there."""
        return self.covers

    @property
    def needs(self) -> tuple[str, ...]:
        """The engine that copies tiles, and what came with it."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Awaits:
        """It waits for groups."""
        return Awaits(Group.BULK, self.pending, self.read)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call, and why."""
        yield from to.reasons(self.covers)
        yield f"tx_wait_bulk{'_read' if self.read else ''}<{self.pending}>();"
