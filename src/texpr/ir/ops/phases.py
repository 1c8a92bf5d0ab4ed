"""Barriers in shared memory ("mbarrier" in PTX): a phase completes when all its arrivals and bytes have come.

The parities of the phases are 0, 1, 0, … The `If` around an operation selects the threads that arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir.operation import Arrives, Makes, Operation, Releases, Waits
from texpr.ir.operation.covered import Covered
from texpr.ir.operation.form import Covers, Indexed, Maybe, Number, Word, barrier
from texpr.ir.value import Buffer, Load
from texpr.isa.cuda import TMA
from texpr.isa.levels import WARP
from texpr.support.limits import LARGEST_INT
from texpr.support.span import Span

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing

MOST_COUNT = 2**20 - 1
"""Limit of the arrivals, and of the bytes, of one phase (PTX ISA, "mbarrier": "Size and alignment", "tx-count")."""


def barrier_counts_fit(stmt: Stmt, at: Place) -> Iterator[str]:
    """Arrivals and bytes are within the limits of a barrier, and a parity is 0 or 1."""
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
    """A kernel that waits at barriers initialises some."""
    if isinstance(stmt, BarrierWait) and not at.has(BarrierInit):
        yield "the kernel makes no barriers"


def barrier_is_of_the_cluster(stmt: Stmt, at: Place) -> Iterator[str]:
    """A warp releases the barrier of its block, or those of all blocks of its cluster, a lane each."""
    most = prod(at.kernel.cluster)
    if isinstance(stmt, BarrierRelease) and stmt.blocks not in (1, most):
        yield f"a cluster has {most} blocks, not {stmt.blocks}"


class BarrierInit(Operation, eq=False):
    """Initialises a barrier with `count` arrivals a phase; a fence "init" and a block barrier make it visible to other
    threads."""

    FORM = (Word("mbarrier"), Word("init"), barrier("barrier"), Word("count"), Number("count"))
    RULES = (barrier_counts_fit,)

    barrier: Load
    count: int

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Makes:
        """Initialises the barrier."""
        return Makes(self.barrier, self.count)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield f"tx_barrier_init({to.place(self.barrier)}, {self.count});"


class BarrierExpect(Operation, eq=False):
    """Arrives at a barrier, and adds `bytes` to what its phase waits for (PTX ISA, "mbarrier.arrive.expect_tx").

    With `exactly`, an expression of at most `bytes`, that many bytes are added instead.
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
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Arrives:
        """Arrives with the bytes."""
        return Arrives(self.barrier, expr(self.bytes) if self.exactly is None else self.exactly)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        count = self.bytes if self.exactly is None else to.index(self.exactly)
        yield f"tx_barrier_expect({to.place(self.barrier)}, {count});"


class BarrierArrive(Operation, eq=False):
    """Arrives at a barrier. Earlier accesses of this thread are visible to threads that wait for the phase."""

    FORM = (Word("mbarrier"), Word("arrive"), barrier("barrier"))

    barrier: Load

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Arrives:
        """Arrives with no bytes."""
        return Arrives(self.barrier, ZERO)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield f"tx_barrier_arrive({to.place(self.barrier)});"


class BarrierRelease(Operation, eq=False):
    """A warp arrives once at a barrier, after all of its lanes have come: what they did is done. `covers`: the dependences.

    `blocks`: of so many blocks, all of the cluster, at the barrier of each. In other blocks that makes known only that engines
    have read, or written, what this warp waited for: not what its threads did themselves, which would take longer than a turn.
    """

    FORM = (
        Word("mbarrier"),
        Word("release"),
        barrier("barrier"),
        Maybe("blocks", 1, "blocks", (Number("blocks"),)),
        Covers("covers"),
    )
    RULES = (barrier_is_of_the_cluster,)

    barrier: Load
    covers: tuple[Covered, ...] = ()
    blocks: int = 1

    @property
    def meets(self) -> int:
        """All lanes of a warp."""
        return WARP

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Releases:
        """One arrival for the warp."""
        return Releases(self.barrier, self.blocks)

    def does(self, effects: Effects) -> None:
        """Lanes come together."""
        effects.meets()

    def cuda(self, to: Printing) -> Iterator[str]:
        """The dependences as comments, and a call of a device function."""
        yield from to.reasons(self.covers)
        among = "" if self.blocks == 1 else f"_among<{self.blocks}>"
        yield f"tx_barrier_release{among}({to.place(self.barrier)});"


class BarrierWait(Operation, eq=False):
    """Waits until the phase of a barrier with this parity has completed; the first phase has parity 0.

    The writes of its copies, and accesses before its arrivals, are then visible to this thread. `covers`: the dependences.
    `phase`: the number of the phase, where the text of the program says it.
    """

    FORM = (
        Word("mbarrier"),
        Word("wait"),
        barrier("barrier"),
        Word("parity"),
        Indexed("parity"),
        Maybe("phase", None, "phase", (Indexed("phase"),)),
        Covers("covers"),
    )
    RULES = (barrier_counts_fit, barrier_waited_for_is_made)

    barrier: Load
    parity: Expr
    covers: tuple[Covered, ...] = ()
    phase: Expr | None = None

    @property
    def waits_for(self) -> tuple[Covered, ...]:
        """The dependences that the wait covers."""
        return self.covers

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Waits:
        """Waits for the phase."""
        return Waits(self.barrier, self.parity, self.phase)

    def cuda(self, to: Printing) -> Iterator[str]:
        """The dependences as comments, and a call of a device function."""
        yield from to.reasons(self.covers)
        yield f"tx_barrier_wait({to.place(self.barrier)}, {to.index(self.parity)});"


def initialised(barriers: Buffer, count: int, span: Span) -> tuple[Operation, ...]:
    """The operations of one thread that make each barrier of an array, with `count` arrivals a phase."""
    slots = range(barriers.shape[0].constant)
    return tuple(BarrierInit(Load(barriers, (expr(slot),)), count, span=span) for slot in slots)


def awaited(barrier: Load, phase: Expr, span: Span) -> Operation:
    """The wait for the phase of a barrier with this number."""
    return BarrierWait(barrier, phase % 2, phase=phase, span=span)
