"""Tensor memory: taking columns of it, what one thread has the tensor core do there, and what orders that (`tcgen05`).

    columns take word[0] count 256                      by a warp, once; behind a barrier all know them
    columns have word[0]
    columns fence before    barrier    columns fence after
    launch instr tcgen05_m128n256k16_f32_bf16 [i, j, k] As[0, 0] 8 descriptor (128, 16, 1024), …, d[0] 256 update
    columns commit done[0]                              arrives when all that its thread started before is done
    mbarrier wait done[0] parity 0    columns fence after
    columns free 256                                    by that warp

Of a pair of blocks (`pair`): warps of both take and give back columns together, and what the thread of the first one launches
and commits, it does for both. The statement is in the text of both; that of the second one does nothing there by itself.

PTX ISA, "Tensor Memory Allocation and Management Instructions", "tcgen05.mma", "tcgen05.commit", "tcgen05 memory consistency
model instructions".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from texpr.affine.expr import ZERO
from texpr.affine.facts import Known
from texpr.ir import operation
from texpr.ir.instr.registers import WORD, columns_of
from texpr.ir.operation import Commits, Fences, Group, Lasts, Operation
from texpr.ir.operation.form import Flag, Maybe, Name, Number, Word, barrier
from texpr.ir.ops.collective import (
    CollectiveAsync,
    Loops,
    Registers,
    group_is_closed_and_waited_for,
    lanes_are_whole_groups,
)
from texpr.ir.value import Load
from texpr.ir.value.types import F8E8M0
from texpr.isa.cuda import TCGEN05
from texpr.isa.instructions.tcgen05 import COLUMNS, LEAST, PAIR
from texpr.isa.instructions.tcgen05 import LANES as TENSOR_LANES
from texpr.isa.instructions.tcgen05_scaled import WORD as SCALES
from texpr.isa.levels import Space

if TYPE_CHECKING:
    from texpr.ir.kernel import Kernel, Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing

BEFORE, AFTER = "before", "after"
"""What a fence is ahead of, or behind: threads that meet."""

FENCED = {BEFORE: "columns before", AFTER: "columns after"}
"""What these fences are called among all (`ir.operation.Fences`)."""


def columns_exist(stmt: Stmt, at: Place) -> Iterator[str]:
    """A number of columns is one that is given, and holds all arrays that the kernel has there."""
    if isinstance(stmt, TakeColumns | FreeColumns):
        count = stmt.count
        if count & (count - 1) or not LEAST <= count <= COLUMNS:
            yield f"{count} columns are no power of two from {LEAST} to {COLUMNS}"
        yield from _arrays_fit(at.kernel, count)


def _arrays_fit(kernel: Kernel, count: int) -> Iterator[str]:
    taken: list[tuple[int, int, str]] = []
    for array in (each for each in kernel.arrays if each.space is Space.TENSOR):
        name, wide, first = array.buffer.name, array.buffer.shape[0], array.at
        bits = array.buffer.dtype.bits
        narrow = bits not in (WORD, WORD // 2, F8E8M0.bits) or not wide.is_constant or wide.constant * bits % WORD
        if first is None or array.buffer.rank != 1 or narrow:
            yield f"{name} is no columns of {WORD} bits"
            continue
        end = first + columns_of(array.buffer.dtype, wide.constant)
        if not 0 <= first <= end <= count:
            yield f"{name} lies in columns {first} to {end}, and {count} are taken"
        for low, high, other in taken:
            if first < high and low < end:
                yield f"{name} and {other} lie in the same columns"
        taken.append((first, end, name))


def columns_are_taken(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel that has arrays in tensor memory takes columns once, knows them once, and gives them back once, all of them."""
    if not isinstance(stmt, TakeColumns | HaveColumns | FreeColumns):
        return
    every = [each for each in at.operations if isinstance(each, TakeColumns | HaveColumns | FreeColumns)]
    if [type(each) for each in every] != [TakeColumns, HaveColumns, FreeColumns]:
        yield "the kernel does not take columns, know them, and give them back, each once"
    elif len({each.count for each in every if not isinstance(each, HaveColumns)}) != 1:
        yield "the kernel gives back another number of columns than it took"
    elif not isinstance(stmt, HaveColumns) and len(at.around) != 1:
        yield "columns are taken, or given back, elsewhere than in one warp"
    elif isinstance(stmt, HaveColumns) and at.around:
        yield "not all threads know the columns"


def fence_is_of_columns(stmt: Stmt, at: Place) -> Iterator[str]:
    """A fence comes before or after threads meet."""
    if isinstance(stmt, FenceColumns) and stmt.kind not in FENCED:
        yield f"there is no fence {stmt.kind}"


class _OfColumns:
    __slots__ = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """Tensor memory."""
        return (TCGEN05,)


class _OfPair(_OfColumns):
    __slots__ = ()

    pair: bool

    @property
    def in_pair(self) -> bool:
        """As it says."""
        return self.pair


class TakeColumns(_OfPair, Operation, eq=False):
    """A warp takes `count` columns of tensor memory, perhaps waiting for other blocks, and stores where they begin to `word`.

    Nobody of the block takes more: so other blocks may (PTX ISA, "tcgen05.relinquish_alloc_permit").
    """

    FORM = (Word("columns"), Word("take"), barrier("word"), Word("count"), Number("count"), Flag("pair"))
    RULES = (columns_exist, columns_are_taken)

    word: Load
    count: int
    pair: bool = False

    @property
    def meets(self) -> int:
        """All lanes of a warp."""
        return operation.WARP

    def completion(self, maps: Mapping[str, TensorMap]) -> Lasts:
        """The columns are the block's."""
        return Lasts("take", self.count)

    def does(self, effects: Effects) -> None:
        """Lanes come together."""
        effects.meets()

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield f"tx_take_columns<{_counted(self.count, self.pair)}>({to.place(self.word)});"


class HaveColumns(_OfColumns, Operation, eq=False):
    """From here on a thread knows where the columns begin."""

    FORM = (Word("columns"), Word("have"), barrier("word"))
    RULES = (columns_are_taken,)

    word: Load

    def completion(self, maps: Mapping[str, TensorMap]) -> Lasts:
        """The thread may use the columns."""
        return Lasts("have", 0)

    def cuda(self, to: Printing) -> Iterator[str]:
        """The declaration of a variable, which the arrays in tensor memory use; then these."""
        yield f"uint32_t const tx_columns = tx_first_column({to.place(self.word)});"
        for array in to.kernel.arrays:
            if array.space is Space.TENSOR:
                first = Load(array.buffer, (ZERO,))
                name = to.place(first).rsplit(",", 1)[0]
                at_once = to.at_once(array.buffer)
                kind = to.type(array.buffer.dtype) + (f", {at_once}" if at_once else "")
                yield f"tx_columns_of<{kind}> const {name}{{tx_columns + {array.at}u}};"


class FreeColumns(_OfPair, Operation, eq=False):
    """The warp that took columns gives them back: nobody of the block touches them any more."""

    FORM = (Word("columns"), Word("free"), Number("count"), Flag("pair"))
    RULES = (columns_exist, columns_are_taken)

    count: int
    pair: bool = False

    @property
    def meets(self) -> int:
        """All lanes of a warp."""
        return operation.WARP

    def completion(self, maps: Mapping[str, TensorMap]) -> Lasts:
        """The columns are the block's no more."""
        return Lasts("free", self.count)

    def does(self, effects: Effects) -> None:
        """Lanes come together."""
        effects.meets()

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield f"tx_free_columns<{_counted(self.count, self.pair)}>(tx_columns);"


def _counted(count: int, pair: bool) -> str:
    """Template arguments: how many columns, of how many blocks."""
    return f"{count}, {PAIR}" if pair else str(count)


class FenceColumns(_OfColumns, Operation, eq=False):
    """Kind "before": what the thread did in tensor memory comes before what others do there, once they have met it.

    Kind "after": what others did there, whom the thread met or waited for, comes before what it does or starts from here on.
    """

    FORM = (Word("columns"), Word("fence"), Name("kind"))
    RULES = (fence_is_of_columns,)

    kind: str

    def completion(self, maps: Mapping[str, TensorMap]) -> Fences:
        """A fence of this kind."""
        return Fences(FENCED[self.kind])

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield f"tx_fence_columns_{self.kind}();"


class CommitColumns(_OfPair, Operation, eq=False):
    """All that the thread started before arrives at a barrier in shared memory, once, when it is done; of a pair, at that of
    each of both blocks."""

    FORM = (Word("columns"), Word("commit"), barrier("barrier"), Flag("pair"))

    barrier: Load
    pair: bool = False

    def completion(self, maps: Mapping[str, TensorMap]) -> Commits:
        """One arrival, later."""
        return Commits(self.barrier, ZERO, Group.TENSOR, self.pair)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield f"tx_commit_columns{'_of_pair' if self.pair else ''}({to.place(self.barrier)});"


def product_is_committed(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel that launches some commits them; whether in time, is proved."""
    if isinstance(stmt, CollectiveAlone) and not at.has(CommitColumns):
        yield "the kernel commits nothing of what it launches"


def one_thread_launches(stmt: Stmt, at: Place) -> Iterator[str]:
    """As many lanes have the rows as the block, or the first of its warps, has threads, and one thread launches for all."""
    instr = at.kernel.instr_of.get(stmt.name) if isinstance(stmt, CollectiveAlone) else None
    if isinstance(stmt, CollectiveAlone) and instr is not None:
        threads = stmt.threads or at.kernel.threads
        if threads != instr.lanes or threads > TENSOR_LANES or not at.around:
            yield f"{stmt.name} is of {instr.lanes} lanes, and one thread launches it"


def scales_are_copied_alike(stmt: Stmt, at: Place) -> Iterator[str]:
    """What copies scales to an array takes as many slots of it each time, one after the other; what reads some takes a part of
    what one byte of each column has. So all of them know which slot is which byte."""
    instr = at.kernel.instr_of.get(stmt.name) if isinstance(stmt, CollectiveAlone) else None
    if not isinstance(stmt, CollectiveAlone) or instr is None:
        return
    others = [each for each in at.operations if isinstance(each, CollectiveAlone)]
    whole = Known({}).multiple
    for held in stmt.registers:
        name, (first, *_) = held.first.buffer.name, held.first.index
        if held.first.dtype != F8E8M0 or held.how is not None:
            continue
        same = [h for each in others for h in each.registers if h.first.buffer is held.first.buffer and h.access == "write"]
        counts = {h.count for h in same}
        if len(counts) != 1 or not whole(first, held.count):
            yield f"scales of {name} are copied {len(counts)} ways, or from elsewhere than multiples of what is taken at once"
        elif held.access == "read" and (counts.pop() // SCALES) % held.count:
            yield f"{stmt.name} reads {held.count} scales of {name} that are in several bytes of a column"


class CollectiveAlone(CollectiveAsync, eq=False):
    """One thread starts the instruction `name` for all lanes whose rows of tensor memory it is about; it goes on by itself.

    Those of one shape are done in the order of their starts. What they read and write is theirs until a barrier that a thread
    waits for says that a commit behind them has come.
    """

    FORM = (
        Word("launch"),
        Word("instr"),
        Name("name"),
        Loops("loops"),
        Maybe("threads", 0, "first", (Number("threads"),)),
        Registers("registers"),
    )
    RULES = (
        one_thread_launches,
        *(rule for rule in CollectiveAsync.RULES if rule not in (lanes_are_whole_groups, group_is_closed_and_waited_for)),
        product_is_committed,
        scales_are_copied_alike,
    )
    GROUP = Group.TENSOR

    @property
    def meets(self) -> None:
        """Nobody else."""
        return None

    @property
    def needs(self) -> tuple[str, ...]:
        """Tensor memory."""
        return (TCGEN05,)

    def completion(self, maps: Mapping[str, TensorMap]) -> operation.Joins:
        """It goes on by itself."""
        return operation.Joins(Group.TENSOR)

    def does(self, effects: Effects) -> None:
        """The meaning takes effect."""
        effects.instructs(self)
