"""Asynchronous copies to shared memory by threads, one access wide (`cp.async` in PTX), and the waits for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from texpr.ir.operation import Awaits, Closes, Group, Joins, Moved, Operation
from texpr.ir.operation.covered import Covered
from texpr.ir.operation.form import Calculated, Covers, Maybe, Number, Word, reads, writes
from texpr.ir.ops.rules import address_is_aligned, elements_are_consecutive, wrong_widths
from texpr.ir.value import Load, Value
from texpr.ir.value.types import BOOL
from texpr.isa.levels import Space

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing

COPY_BYTES = (4, 8, 16)
"""Sizes in bytes of one asynchronous copy (PTX ISA, "cp.async": cp-size)."""


def copy_is_one_access(stmt: Stmt, at: Place) -> Iterator[str]:
    """The size of a copy is one that the machine supports."""
    if isinstance(stmt, CopyAsync):
        yield from wrong_widths(stmt, COPY_BYTES)


def copy_goes_into_shared_memory(stmt: Stmt, at: Place) -> Iterator[str]:
    """A copy goes from a buffer in global memory to a shared array of the same type."""
    if isinstance(stmt, CopyAsync):
        target, source = stmt.target, stmt.source
        if at.space(target.buffer) is not Space.SHARED:
            yield f"{target.buffer.name} is no shared array"
        if source.buffer not in at.kernel.buffers:
            yield f"{source.buffer.name} is not in global memory"
        if target.dtype != source.dtype:
            yield f"{target.buffer.name} holds {target.dtype}, {source.buffer.name} {source.dtype}"


def copy_condition_is_bool(stmt: Stmt, at: Place) -> Iterator[str]:
    """The condition of a copy is a bool."""
    if isinstance(stmt, CopyAsync) and stmt.when is not None and stmt.when.dtype != BOOL:
        yield f"the condition is {stmt.when.dtype}"


def copy_is_waited_for(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel with copies also commits and waits for them; that it waits in time is checked by the emulator."""
    if isinstance(stmt, CopyAsync):
        if not at.has(CommitAsync):
            yield "the kernel commits no copies"
        if not at.has(WaitAsync):
            yield "the kernel waits for no copies"


def wait_leaves_no_less_than_none(stmt: Stmt, at: Place) -> Iterator[str]:
    """The number of pending groups is not negative."""
    if isinstance(stmt, WaitAsync) and stmt.pending < 0:
        yield f"{stmt.pending} groups cannot be left"


class CopyAsync(Operation, eq=False):
    """Starts a copy of `count` consecutive elements (4, 8 or 16 bytes, aligned so) from global memory to a shared array.

    Where `when` is false, nothing is read and zeros are written. Until the thread that started the copy has waited for it, no
    thread may access the target or write the source.
    """

    FORM = (
        Word("copy"),
        writes("target", "count"),
        Word("="),
        reads("source", "count"),
        Maybe("when", None, "when", (Calculated("when"),)),
        Word("count"),
        Number("count"),
    )
    RULES = (
        copy_is_one_access,
        elements_are_consecutive,
        address_is_aligned,
        copy_goes_into_shared_memory,
        copy_condition_is_bool,
        copy_is_waited_for,
    )

    target: Load
    source: Load
    count: int
    when: Value | None = None

    def completion(self, maps: Mapping[str, TensorMap]) -> Joins:
        """The copy joins the current group."""
        return Joins(Group.ASYNC)

    @property
    def by(self) -> str:
        """The name of this kind of copy in schedules."""
        return "cp_async"

    @property
    def perhaps_outside(self) -> tuple[Load, ...]:
        """The source, if there is a condition: it may be out of bounds where the condition is false."""
        return () if self.when is None else (self.source,)

    def moved(self, maps: Mapping[str, TensorMap]) -> Moved:
        """The copy of its elements."""
        size = self.count * self.source.dtype.bytes
        return Moved("cp.async", self.source.buffer, self.target.buffer, size, when=self.when)

    def c(self, to: Printing) -> Iterator[str]:
        """`tx_copy_async<4>(tile, i, x, j);`, with the condition, if any, as the last argument."""
        when = "" if self.when is None else f", {to.value(self.when)}"
        source = to.place(self.source, inside=self.when is None)
        yield f"tx_copy_async<{self.count}>({to.place(self.target)}, {source}{when});"

    def does(self, effects: Effects) -> None:
        """Copies the elements by one aligned access."""
        effects.at_once(self.count, self.target, self.source)
        effects.copies(self.target, self.source, self.count, self.when)


class CommitAsync(Operation, eq=False):
    """Makes one group of the copies that this thread started since its last commit."""

    FORM = (Word("commit"),)

    def completion(self, maps: Mapping[str, TensorMap]) -> Closes:
        """Closes the group."""
        return Closes(Group.ASYNC)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield "tx_commit_async();"

    def cpu(self, to: Printing) -> Iterator[str]:
        """Nothing: on a CPU a copy completes when it is started."""
        yield from ()


class WaitAsync(Operation, eq=False):
    """Waits until at most `pending` of this thread's groups, the latest ones, are incomplete.

    Writes of completed groups are then visible to this thread; a barrier makes them visible to others. `covers`: the
    dependences.
    """

    FORM = (Word("wait"), Number("pending"), Covers("covers"))
    RULES = (wait_leaves_no_less_than_none,)

    pending: int
    covers: tuple[Covered, ...] = ()

    @property
    def waits_for(self) -> tuple[Covered, ...]:
        """The dependences that the wait covers."""
        return self.covers

    def completion(self, maps: Mapping[str, TensorMap]) -> Awaits:
        """Waits for groups."""
        return Awaits(Group.ASYNC, self.pending)

    def cuda(self, to: Printing) -> Iterator[str]:
        """The dependences as comments, and a call of a device function."""
        yield from to.reasons(self.covers)
        yield f"tx_wait_async<{self.pending}>();"

    def cpu(self, to: Printing) -> Iterator[str]:
        """Nothing: on a CPU a copy completes when it is started."""
        yield from ()
