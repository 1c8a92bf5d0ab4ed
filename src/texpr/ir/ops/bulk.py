"""Bulk copies of contiguous runs by an engine, without a tensor map, and the bulk groups of stores from shared memory."""

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
    """A copy goes from global to shared memory with a barrier, or back without one; its size is a multiple of 16 bytes."""
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
    """Complaints about a constant number of elements, `exactly`."""
    if stmt.exactly is None or not stmt.exactly.is_constant:
        return
    count = stmt.exactly.constant
    if not 0 < count <= stmt.count or count * stmt.source.dtype.bytes % CHUNK:
        yield f"{count} of {stmt.count} elements of {stmt.source.dtype} are no multiple of {CHUNK} bytes, or not among them"


def run_is_combined_by_the_engine(stmt: Stmt, at: Place) -> Iterator[str]:
    """The engine supports the reduction for the type of the elements."""
    if isinstance(stmt, CopyBulk) and stmt.reduce is not None:
        kind = travelling(combined_as(stmt.reduce, stmt.source.dtype), element(stmt.source.dtype))
        yield from wrong_combination(stmt.reduce, stmt.source, kind)


def run_is_waited_for(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel with copies also waits for them; that it waits in time is checked by the emulator."""
    if isinstance(stmt, CopyBulk):
        if stmt.barrier is None and not at.has(WaitBulk):
            yield "the kernel waits for no stores of tiles"
        if stmt.barrier is not None and not at.has(BarrierWait):
            yield "the kernel waits for no copies of tiles"


def groups_are_there_and_some_are_left(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel that waits for groups commits some, and the number of pending groups is not negative."""
    if isinstance(stmt, WaitBulk):
        if not at.has(CommitBulk):
            yield "the kernel commits no stores of tiles"
        if stmt.pending < 0:
            yield f"{stmt.pending} groups cannot be left"


class CopyBulk(Operation, eq=False):
    """Starts a copy of `count` consecutive elements (16 bytes or a multiple, aligned likewise), without a tensor map.

    A copy to a shared array completes at `barrier`, as does `CopyTensor`. A copy from a shared array has no barrier and joins a
    bulk group, as does `StoreTensor`: no thread may write the source before a `WaitBulk` with `read`, nor access the target
    before one without.

    With `exactly`, a number that the kernel computes, only so many elements are read, written and counted: more than 0, at most
    `count`, and a multiple of 16 bytes. With `reduce`, as in `StoreTensor`, each element of the target is atomically combined
    with that of the source, in no order among such copies; subnormal f32, operands and results, count as zeros of their sign
    (PTX ISA, "cp.reduce.async.bulk").
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
        """The name of this kind of copy in schedules."""
        return "bulk"

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    @property
    def tiles(self) -> tuple[Load, ...]:
        """The tile in shared memory that the engine reads or writes."""
        return (self.target, self.source)

    def completion(self, maps: Mapping[str, TensorMap]) -> Brings | Joins:
        """A load completes at its barrier, a store joins the bulk group."""
        if self.barrier is None:
            return Joins(Group.BULK)
        count = expr(self.count) if self.exactly is None else self.exactly
        return Brings(self.barrier, count * self.source.dtype.bytes)

    def moved(self, maps: Mapping[str, TensorMap]) -> Moved:
        """The copy of its elements."""
        width = self.source.dtype.bytes
        exactly = None if self.exactly is None else self.exactly * width
        return Moved("bulk", self.source.buffer, self.target.buffer, self.count * width, exactly=exactly, reduce=self.reduce)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        ends = f"{to.place(self.target)}, {to.place(self.source)}"
        barrier = "" if self.barrier is None else f", {to.place(self.barrier)}"
        verb = "load" if self.barrier is not None else "store" if self.reduce is None else f"reduce_{self.reduce}"
        if self.exactly is not None:
            yield f"tx_{verb}_bulk({ends}{barrier}, {to.index(self.exactly)});"
        else:
            yield f"tx_{verb}_bulk<{self.count}>({ends}{barrier});"

    def does(self, effects: Effects) -> None:
        """Starts the copy."""
        effects.sends(self)


class CommitBulk(Operation, eq=False):
    """Makes one bulk group of the stores that this thread started since its last commit."""

    FORM = (Word("commit_bulk"),)

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Closes:
        """Closes the group."""
        return Closes(Group.BULK)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield "tx_commit_bulk();"


class WaitBulk(Operation, eq=False):
    """Waits until at most `pending` of this thread's bulk groups, the latest ones, are incomplete.

    With `read` they only have to have read their tiles, which may then be overwritten. `covers`: the dependences.
    """

    FORM = (Word("wait_bulk"), Number("pending"), Flag("read"), Covers("covers"))
    RULES = (groups_are_there_and_some_are_left,)

    pending: int
    read: bool = False
    covers: tuple[Covered, ...] = ()

    @property
    def waits_for(self) -> tuple[Covered, ...]:
        """The dependences that the wait covers."""
        return self.covers

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Awaits:
        """Waits for groups."""
        return Awaits(Group.BULK, self.pending, self.read)

    def cuda(self, to: Printing) -> Iterator[str]:
        """The dependences as comments, and a call of a device function."""
        yield from to.reasons(self.covers)
        yield f"tx_wait_bulk{'_read' if self.read else ''}<{self.pending}>();"
