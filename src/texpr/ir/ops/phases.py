"""Barriers in shared memory ("mbarrier" in PTX): they count arrivals and bytes, and their phases complete when both have come.

The parity of the phases is 0, 1, 0, … Which thread arrives is a matter of the `If` around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir.operation import Arrives, Makes, Operation, Waits
from texpr.ir.operation.covered import Covered
from texpr.ir.operation.form import Covers, Indexed, Maybe, Number, Word, barrier
from texpr.ir.value import Load
from texpr.isa.cuda import TMA
from texpr.support.limits import LARGEST_INT

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing

MOST_COUNT = 2**20 - 1
"""Arrivals, and bytes, that a barrier counts in a phase (PTX ISA, "mbarrier": "Size and alignment", "tx-count")."""


def barrier_counts_fit(stmt: Stmt, at: Place) -> Iterator[str]:
    """A barrier counts so far, and phases have parities."""
    match stmt:
        case BarrierInit() if not 1 <= stmt.count <= MOST_COUNT:
            yield f"a phase cannot wait for {stmt.count} arrivals"
        case BarrierExpect() if not 0 <= stmt.bytes <= MOST_COUNT:
            yield f"a phase cannot wait for {stmt.bytes} bytes"
        case BarrierWait():
            sizes: dict[Sym, Range] = {size: (0, LARGEST_INT) for size in at.kernel.sizes}
            lo, hi = Known(sizes).bounds(stmt.parity)
            if lo is None or hi is None or lo < 0 or hi > 1:
                yield f"{stmt.parity} is not known to be 0 or 1"
        case _:
            pass


def barrier_waited_for_is_made(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel that waits at barriers makes them."""
    if isinstance(stmt, BarrierWait) and not at.has(BarrierInit):
        yield "the kernel makes no barriers"


class BarrierInit(Operation, eq=False):
    """Makes a barrier, whose phases wait for `count` arrivals each. Others know it after a fence and a block's barrier."""

    FORM = (Word("mbarrier"), Word("init"), barrier("barrier"), Word("count"), Number("count"))
    RULES = (barrier_counts_fit,)

    barrier: Load
    count: int

    @property
    def needs(self) -> tuple[str, ...]:
        """The engine that copies tiles, and what came with it."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Makes:
        """It makes it."""
        return Makes(self.barrier, self.count)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call."""
        yield f"tx_barrier_init({to.place(self.barrier)}, {self.count});"


class BarrierExpect(Operation, eq=False):
    """Arrives at a barrier, whose phase now waits for `bytes` more (PTX ISA, "mbarrier.arrive.expect_tx").

    With `exactly` it is that many instead, which the kernel computes, and which is at most `bytes`.
    """

    FORM = (
        Word("mbarrier"),
        Word("expect"),
        barrier("barrier"),
        Word("bytes"),
        Number("bytes"),
        Maybe("exactly", None, "exactly", (Indexed("exactly"),)),
    )
    RULES = (barrier_counts_fit,)

    barrier: Load
    bytes: int
    exactly: Expr | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """The engine that copies tiles, and what came with it."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Arrives:
        """It arrives."""
        return Arrives(self.barrier, expr(self.bytes) if self.exactly is None else self.exactly)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call."""
        count = self.bytes if self.exactly is None else to.index(self.exactly)
        yield f"tx_barrier_expect({to.place(self.barrier)}, {count});"


class BarrierArrive(Operation, eq=False):
    """Arrives at a barrier. What this thread did before is visible to who waits for the phase."""

    FORM = (Word("mbarrier"), Word("arrive"), barrier("barrier"))

    barrier: Load

    @property
    def needs(self) -> tuple[str, ...]:
        """The engine that copies tiles, and what came with it."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Arrives:
        """It arrives, and nothing is to come."""
        return Arrives(self.barrier, ZERO)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call."""
        yield f"tx_barrier_arrive({to.place(self.barrier)});"


class BarrierWait(Operation, eq=False):
    """Waits until the phase of a barrier with this parity has completed: the first of all phases has parity 0.

    What its copies wrote, and what came before its arrivals, is then visible to this thread. `covers` lists why.
    """

    FORM = (Word("mbarrier"), Word("wait"), barrier("barrier"), Word("parity"), Indexed("parity"), Covers("covers"))
    RULES = (barrier_counts_fit, barrier_waited_for_is_made)

    barrier: Load
    parity: Expr
    covers: tuple[Covered, ...] = ()

    @property
    def waits_for(self) -> tuple[Covered, ...]:
        """Why it is there."""
        return self.covers

    @property
    def needs(self) -> tuple[str, ...]:
        """The engine that copies tiles, and what came with it."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Waits:
        """It waits."""
        return Waits(self.barrier, self.parity)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call, and why."""
        yield from to.reasons(self.covers)
        yield f"tx_barrier_wait({to.place(self.barrier)}, {to.index(self.parity)});"
