"""Statements of a kernel that move several elements at once, and what waits for those that go on by themselves.

    transfer = LoadVector vars = elements | StoreVector elements = values
             | CopyAsync shared elements = global elements | CommitAsync | WaitAsync
             | CopyTensor shared tile = map[coordinates], arrives at barrier | StoreTensor map[coordinates] = shared tile
             | CopyBulk elements = elements | CommitBulk | WaitBulk
             | BarrierInit | BarrierExpect | BarrierArrive | BarrierWait barrier | Fence | PrefetchMap map

A barrier here is an element of an array of barriers in shared memory ("mbarrier" in PTX): it counts arrivals and bytes, and
its phases, whose parity is 0, 1, 0, …, complete when both have come. Which thread issues is a matter of the `If` around it.
"""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym
from texpr.ir.value import Buffer, Load, Value
from texpr.support.record import Record, replace
from texpr.support.span import NOWHERE, Span


class Covered(Record):
    """A dependence that a barrier is there for: RAW, WAR or WAW; on which buffer; its ends; the loop that carries it.

    END: a block has a part of the buffer, and ends only when others of its cluster have read that.
    """

    kind: str
    buffer: str
    source: Span
    sink: Span
    carried: Sym | None = None


class LoadVector(Record, eq=False):
    """New variables for consecutive elements of one row, the first of them `source`, all read by one access.

    The width in bytes is 2, 4, 8 or 16, and divides the address.
    """

    targets: tuple[Sym, ...]
    source: Load
    span: Span = NOWHERE


class StoreVector(Record, eq=False):
    """Consecutive elements of one row, the first of them `target`, all written by one access. Widths as in `LoadVector`."""

    target: Load
    values: tuple[Value, ...]
    span: Span = NOWHERE


class CopyAsync(Record, eq=False):
    """Starts a copy of `count` consecutive elements (4, 8 or 16 bytes, aligned so) from global memory to a shared array.

    Where `when` is given and false nothing is read, and zero bytes are written. Until the thread that started the copy has
    waited for it, nobody reads or writes the target or writes the source.
    """

    target: Load
    source: Load
    count: int
    when: Value | None = None
    span: Span = NOWHERE


class CommitAsync(Record, eq=False):
    """The copies that this thread started since its last commit become one group."""

    span: Span = NOWHERE


class WaitAsync(Record, eq=False):
    """Waits until at most `pending` of this thread's groups, the latest ones, are unfinished.

    What the finished ones wrote is then visible to this thread; a barrier makes it visible to others. `covers` lists why.
    """

    pending: int
    covers: tuple[Covered, ...] = ()
    span: Span = NOWHERE


class TensorMap(Record, eq=False):
    """How the hardware finds boxes of a tensor: encoded by the host before each launch, and passed to the kernel by value.

    Dimension 0 is the innermost, as the driver has it (CUDA driver API, `cuTensorMapEncodeTiled`). `sizes` in elements;
    `strides` in bytes, of dimensions 1 and up; both in sizes of the plan. `box`: elements along each dimension; `steps`: from
    one element to the next. `swizzle` is 0, 32, 64 or 128, `interleave` 0, 16 or 32 bytes; `fill`, "zero" or "nan", is what a
    load writes for elements outside of the tensor. `offset`: elements from the start of `buffer` to the first of the tensor.
    `element`: the driver's name of their type, where it is another one of that size than the buffer's own.

    With `corners` the map is in im2col mode (`cuTensorMapEncodeIm2col`): `box` is the channels of a pixel and the pixels of a
    column. Pixels walk, `steps` apart, through a bounding box that begins and ends as far from the first and from the last one
    as the two numbers for each dimension of space say, W first; then through that of the next image.
    """

    name: str
    buffer: Buffer
    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int = 0
    interleave: int = 0
    fill: str = "zero"
    offset: Expr = ZERO
    element: str = ""
    corners: tuple[tuple[int, int], ...] = ()
    span: Span = NOWHERE

    @property
    def rank(self) -> int:
        """How many dimensions there are."""
        return len(self.sizes)

    @property
    def tile(self) -> tuple[int, ...]:
        """Elements along each dimension of what one copy moves: ⌈box / step⌉, or channels and pixels."""
        if self.corners:
            return self.box
        return tuple(-(-box // step) for box, step in zip(self.box, self.steps, strict=True))

    @property
    def bytes(self) -> int:
        """How many bytes one copy moves, those that it fills included: what its barrier expects."""
        return prod(self.tile) * self.buffer.dtype.bytes

    @property
    def room(self) -> int:
        """Bytes of shared memory that a tile takes: with a swizzle a row takes at least its span."""
        return prod(self.tile[1:]) * max(self.tile[0] * self.buffer.dtype.bytes, self.swizzle)


class BarrierInit(Record, eq=False):
    """Makes a barrier, whose phases wait for `count` arrivals each. Others know it after a fence and a block's barrier."""

    barrier: Load
    count: int
    span: Span = NOWHERE


class BarrierExpect(Record, eq=False):
    """Arrives at a barrier, whose phase now waits for `bytes` more (PTX ISA, "mbarrier.arrive.expect_tx").

    With `exactly` it is that many instead, which the kernel computes, and which is at most `bytes`.
    """

    barrier: Load
    bytes: int
    span: Span = NOWHERE
    exactly: Expr | None = None


class BarrierArrive(Record, eq=False):
    """Arrives at a barrier. What this thread did before is visible to who waits for the phase."""

    barrier: Load
    span: Span = NOWHERE


class BarrierWait(Record, eq=False):
    """Waits until the phase of a barrier with this parity has completed: the first of all phases has parity 0.

    What its copies wrote, and what came before its arrivals, is then visible to this thread. `covers` lists why.
    """

    barrier: Load
    parity: Expr
    covers: tuple[Covered, ...] = ()
    span: Span = NOWHERE


class CopyTensor(Record, eq=False):
    """Starts a copy of the box of map `map` at coordinates `at`, innermost first, to the tile that `target` is the first of.

    Coordinates are signed; elements outside of the tensor are filled. The bytes of the whole box arrive at `barrier`. Until its
    phase has completed nobody reads or writes the tile.

    With `peers` the box goes to several blocks of the cluster, whose ranks are `first` + each of `peers`: to the same tile in
    each, and its bytes to the same barrier in each.

    In im2col mode `offsets`, one a dimension of space, W first, are added to every pixel; `at` is a channel, a pixel of the
    bounding box, and an image. With `rows` four rows of a matrix are copied, one behind the other: `at` is a column alone.
    """

    target: Load
    map: str
    at: tuple[Expr, ...]
    barrier: Load
    span: Span = NOWHERE
    peers: tuple[int, ...] = ()
    first: Expr = ZERO
    offsets: tuple[Expr, ...] = ()
    rows: tuple[Value, ...] = ()


class StoreTensor(Record, eq=False):
    """Starts a copy of the tile that `source` is the first of to the box of `map` at coordinates `at`, innermost first.

    Elements outside of the tensor are not written. `reduce`: add, min, max, and, or, xor, by which each element is combined
    with what is there; of u32 also inc and dec, which wrap at the tile's element. Nobody writes the tile until the thread has
    waited for it, by `WaitBulk`.

    With `rows` the tile is four rows, one behind the other, that go to these rows of a matrix: `at` is a column alone. Those
    that the matrix has not are left out; the others differ, as nothing says which of two would come last.
    """

    map: str
    at: tuple[Expr, ...]
    source: Load
    reduce: str | None = None
    span: Span = NOWHERE
    rows: tuple[Value, ...] = ()


class CopyBulk(Record, eq=False):
    """Starts a copy of `count` consecutive elements (16 bytes or a multiple, aligned so), without a map.

    To a shared array its bytes arrive at `barrier`, as in `CopyTensor`; from one there is none, and it is waited for as is a
    `StoreTensor`: until a `WaitBulk` with `read` nobody writes the source, and until one without it nobody touches the target.

    With `exactly` only that many elements are read, written and counted, which the kernel computes: more than 0, at most
    `count`, and whole 16 bytes as well. With `reduce`, as in `StoreTensor`, each element of the target becomes its combination
    with that of the source, at once each, in no order among such copies; an f32 that is subnormal, before or after, counts as
    zero of its sign (PTX ISA, "cp.reduce.async.bulk").
    """

    target: Load
    source: Load
    count: int
    barrier: Load | None = None
    span: Span = NOWHERE
    reduce: str | None = None
    exactly: Expr | None = None


class CommitBulk(Record, eq=False):
    """The stores of tiles that this thread started since its last commit become one group."""

    span: Span = NOWHERE


class WaitBulk(Record, eq=False):
    """Waits until at most `pending` of this thread's groups of stores, the latest ones, are unfinished.

    With `read` they need only have read their tiles, which may then be written again. `covers` lists why.
    """

    pending: int
    read: bool = False
    covers: tuple[Covered, ...] = ()
    span: Span = NOWHERE


class Fence(Record, eq=False):
    """`kind` "async": what this thread did to shared memory, reads too, comes before copies of tiles that start after it.

    `kind` "init": the barriers that this thread has made are known to copies, and behind a block's barrier to its threads.
    """

    kind: str
    span: Span = NOWHERE


class PrefetchMap(Record, eq=False):
    """Brings a map into the cache."""

    map: str
    span: Span = NOWHERE


Moved: TypeAlias = LoadVector | StoreVector | CopyAsync
"""What moves as many elements as one thread does at once."""

Tiles: TypeAlias = CopyTensor | StoreTensor | CopyBulk | PrefetchMap
"""What an engine moves, or makes ready for it."""

Waited: TypeAlias = (
    CommitAsync | WaitAsync | CommitBulk | WaitBulk | BarrierInit | BarrierExpect | BarrierArrive | BarrierWait | Fence
)
"""What is there for the sake of copies that go on by themselves."""

Transfer: TypeAlias = Moved | Tiles | Waited


def transfer_values(stmt: Transfer) -> tuple[Value, ...]:
    """The values that a transfer holds, the elements that it writes first."""
    match stmt:
        case LoadVector():
            return (stmt.source,)
        case StoreVector():
            return (stmt.target, *stmt.values)
        case CopyAsync():
            return (stmt.target, stmt.source, *_given(stmt.when))
        case CopyTensor():
            return (stmt.target, stmt.barrier, *stmt.rows)
        case StoreTensor():
            return (stmt.source, *stmt.rows)
        case CopyBulk():
            return (stmt.target, stmt.source, *_given(stmt.barrier))
        case BarrierInit() | BarrierExpect() | BarrierArrive() | BarrierWait():
            return (stmt.barrier,)
        case CommitAsync() | WaitAsync() | CommitBulk() | WaitBulk() | Fence() | PrefetchMap():
            return ()


def _given(value: Value | None) -> tuple[Value, ...]:
    return () if value is None else (value,)


def transfer_exprs(stmt: Transfer) -> tuple[Expr, ...]:
    """The index expressions that a transfer holds outside of its values."""
    match stmt:
        case CopyTensor():
            return (*stmt.at, *stmt.offsets, stmt.first)
        case StoreTensor():
            return stmt.at
        case BarrierWait():
            return (stmt.parity,)
        case CopyBulk() | BarrierExpect():
            return () if stmt.exactly is None else (stmt.exactly,)
        case _:
            return ()


def consecutive(first: Load, count: int) -> tuple[Load, ...]:
    """`count` elements of one row, from `first` on."""
    *outer, last = first.index
    return tuple(replace(first, index=(*outer, last + at)) for at in range(count))


def offset(element: Load) -> Expr:
    """Elements before `element` in its buffer."""
    total, buffer = ZERO, element.buffer
    for at, index in enumerate(element.index):
        total = total * buffer.shape[at] + index if buffer.strides is None else total + index * buffer.strides[at]
    return total


def transferred(stmt: Transfer) -> tuple[tuple[Load, ...], tuple[Load, ...]]:
    """The elements that a transfer reads and those that it writes; of a tile, and of a long run, the first stands for all."""
    match stmt:
        case LoadVector():
            return consecutive(stmt.source, len(stmt.targets)), ()
        case StoreVector():
            return (), consecutive(stmt.target, len(stmt.values))
        case CopyAsync():
            return consecutive(stmt.source, stmt.count), consecutive(stmt.target, stmt.count)
        case CopyTensor():
            return (), (stmt.target,)
        case StoreTensor():
            return (stmt.source,), ()
        case CopyBulk():
            return (stmt.source,), (stmt.target,)
        case _:
            return (), ()
