"""What a machine runs: threads, memory spaces and barriers made explicit; no vendor named.

    plan      = parameters, checks, workspace, host steps
    host step = Launch kernel on grid | HostLoop sym < extent {step} | HostIf condition {step} {step}
    kernel    = axes, arrays, body; run once by each point of its axes
    stmt      = For sym lo..hi step {stmt} | If value {stmt} {stmt} | an operation of `texpr.ir.ops`, whose names are here too

Values are those of `ir.value`: a `Load` names a parameter or an array of the kernel, a `Ref` a variable, and an axis' symbol
is an ordinary index symbol. Index expressions of loads and stores are per dimension; printers linearise them with the
array's strides (dense row-major where not given).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym
from texpr.ir import operation
from texpr.ir.instr import Instr
from texpr.ir.operation import Moved, Operation
from texpr.ir.operation.covered import Covered
from texpr.ir.operation.form import consecutive
from texpr.ir.operation.maps import TensorMap
from texpr.ir.ops.bulk import CommitBulk, CopyBulk, WaitBulk
from texpr.ir.ops.collective import Collective, CollectiveAsync
from texpr.ir.ops.copies import CommitAsync, CopyAsync, WaitAsync
from texpr.ir.ops.fences import Fence
from texpr.ir.ops.lanes import Exchange, Shuffle
from texpr.ir.ops.meeting import Barrier
from texpr.ir.ops.memory import Atomic, Store
from texpr.ir.ops.phases import BarrierArrive, BarrierExpect, BarrierInit, BarrierWait
from texpr.ir.ops.registers import Assign, Declare
from texpr.ir.ops.tiles import CopyTensor, PrefetchMap, StoreTensor
from texpr.ir.ops.vectors import LoadVector, StoreVector
from texpr.ir.ops.warpgroup import CommitWarpgroup, FenceWarpgroup, WaitWarpgroup
from texpr.ir.program import Assume, Compare
from texpr.ir.value import Buffer, Index, Load, Ref, Value, operands
from texpr.ir.value import walk as value_walk
from texpr.isa.levels import WARP, Level, Space
from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span

__all__ = [
    "Array", "Assign", "Atomic", "Axis", "Barrier", "BarrierArrive", "BarrierExpect", "BarrierInit", "BarrierWait",
    "Collective", "CollectiveAsync", "CommitAsync", "CommitBulk", "CommitWarpgroup", "CopyAsync", "CopyBulk", "CopyTensor",
    "Covered", "Declare", "Exchange", "Fence", "FenceWarpgroup", "For", "HostIf", "HostLoop", "HostStep", "If", "Kernel",
    "Launch", "Level", "LoadVector", "Operation", "Plan", "PrefetchMap", "Shuffle", "Space", "Stmt", "Store", "StoreTensor",
    "StoreVector", "TensorMap", "Together", "WaitAsync", "WaitBulk", "WaitWarpgroup", "blocks", "consecutive", "exprs",
    "kernels", "memory", "moves", "symbols", "value_symbols", "values", "walk",
]  # fmt: skip


class Axis(Record):
    """A hardware coordinate `sym` in 0..extent. `dim` is "x", "y" or "z" for GRID, CLUSTER and BLOCK.

    A CLUSTER axis says which of the blocks of its cluster a block is along a dimension: the index along the GRID axis of that
    dimension, modulo the extent. That axis has a whole number of clusters, and begins at one.

    A GRID axis with `base` (a symbol, passed as a kernel argument) has block index + base as its value, so that a launch
    may be cut into slabs where the device limits the grid.
    """

    sym: Sym
    level: Level
    extent: Expr
    dim: str = "x"
    base: Sym | None = None


class Array(Record, eq=False):
    """Memory made by a kernel (CLUSTER, SHARED, LANES, LOCAL). `buffer.shape` is constant. `reason`: which relation decided,
    for `explain`.

    CLUSTER: the first index is the rank of the block of a cluster in whose shared memory an element lies, at the same place in
    each. A block writes to its own part alone, and reads all.

    `align`: bytes of which its address is a multiple, a power of two up to 1024. `barrier`: its elements, u64 in shared memory,
    are no numbers but barriers of `texpr.ir.ops.phases`.

    `at`: in shared memory, how many bytes after the start of the block's shared memory it begins; None: where no other array
    lies. Of a kernel all shared arrays have one, or none. Two arrays whose bytes at..at + size meet *share* these: to write an
    element of one is to write whatever elements of the other lie there. What these held is lost then, and may not be read
    until written again; an access of each, one of them a write, are a conflict, and must be ordered like two of one element.
    Barriers share with none, nor does an array to or from which tiles or runs are copied (`CopyTensor`, `StoreTensor`,
    `CopyBulk`). `shared.overlaps` lists the pairs.
    """

    buffer: Buffer
    space: Space
    reason: str = ""
    align: int = 16
    barrier: bool = False
    at: int | None = None


class For(Record, eq=False):
    """`for sym in lo..hi by step`. `kind`: "serial", "unroll", "simd" (independent lanes: Level.LANE).

    `factor` of an unrolled loop: how many iterations stand in one turn; 0 for all of them, which needs a constant trip count.
    `reductions` of a simd loop: (variable, op) pairs whose order is free. `uniform`: all threads of a block run it alike,
    so that barriers may stand inside.
    """

    sym: Sym
    lo: Expr
    hi: Expr
    body: tuple[Stmt, ...]
    step: Expr
    kind: str = "serial"
    reductions: tuple[tuple[Sym, str], ...] = ()
    uniform: bool = False
    span: Span = NOWHERE
    factor: int = 0


class If(Record, eq=False):
    """`if condition`. `uniform`: all threads of a block decide alike, so that barriers may stand inside."""

    condition: Value
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    uniform: bool = False
    span: Span = NOWHERE


Stmt: TypeAlias = For | If | Operation
"""An operation has no statements below it."""


class Kernel(Record, eq=False):
    """One device function.

    `buffers`: global memory it touches (parameters and workspace), in argument order; `scalars`: rank-0 inputs passed by
    value; `sizes`: integer arguments (sizes, host loop indices, slab bases), all 0 ≤ size < 2³¹. `written` names the
    buffers it writes, through maps too. `min_blocks`: how many blocks a multiprocessor is to hold at once, which bounds
    registers; 0 for no wish. `maps`: those of its copies of tiles; their tensors need not be among `buffers`. `warp`: lanes of
    its warps, a power of two; consecutive threads. `instrs`: what its `Collective`s are, by their names.
    """

    name: str
    axes: tuple[Axis, ...]
    buffers: tuple[Buffer, ...]
    scalars: tuple[Buffer, ...]
    sizes: tuple[Sym, ...]
    arrays: tuple[Array, ...]
    body: tuple[Stmt, ...]
    written: frozenset[str]
    span: Span = NOWHERE
    min_blocks: int = 0
    maps: tuple[TensorMap, ...] = ()
    warp: int = WARP
    instrs: tuple[Instr, ...] = ()

    @property
    def threads(self) -> int:
        """Threads in a block: the product of the BLOCK axes (1 for a CPU kernel)."""
        count = 1
        for axis in self.axes:
            if axis.level is Level.BLOCK:
                count *= axis.extent.constant
        return count

    def group(self, meets: int) -> int:
        """How many consecutive threads come together for an operation that `meets` so: of a warp, its lanes."""
        return self.warp if meets == operation.WARP else meets

    @property
    def cluster(self) -> tuple[int, int, int]:
        """Blocks of a cluster along x, y and z; ones where the kernel has no clusters.

        A block's rank in its cluster counts x first, then y, then z.
        """
        along = {axis.dim: axis.extent.constant for axis in self.axes if axis.level is Level.CLUSTER}
        return along.get("x", 1), along.get("y", 1), along.get("z", 1)

    @property
    def map_of(self) -> dict[str, TensorMap]:
        """Its maps by their names."""
        return {map.name: map for map in self.maps}

    @property
    def instr_of(self) -> dict[str, Instr]:
        """Its instructions by their names."""
        return {instr.name: instr for instr in self.instrs}

    @property
    def rank(self) -> Sym | None:
        """The coordinate that says which block of its cluster a block is, where blocks lie along one dimension."""
        along = [axis.sym for axis in self.axes if axis.level is Level.CLUSTER]
        return along[0] if len(along) == 1 else None


class Launch(Record, eq=False):
    """Run `kernel` over its axes; extents of GRID and CORE axes are evaluated on the host. Nothing runs where one is 0."""

    kernel: Kernel


class HostLoop(Record, eq=False):
    """Steps run `extent` times in order; `sym` is passed to kernels as a size.

    `together`: how one launch may run all of it; None where each step is a launch of its own. What is done is the same.
    """

    sym: Sym
    extent: Expr
    steps: tuple[HostStep, ...]
    together: Together | None = None


class Together(Record):
    """One launch for a host loop: `name` is its kernel's, which goes through the steps itself, all blocks meeting behind each.

    `meeting`: eight bytes of the workspace in which they count. Blocks can only meet if the device holds all of them at once.
    """

    name: str
    meeting: Buffer


class HostIf(Record, eq=False):
    """Steps run where a fact about sizes and host loop indices holds (a conjunction)."""

    conditions: tuple[Compare, ...]
    steps: tuple[HostStep, ...]


HostStep: TypeAlias = Launch | HostLoop | HostIf


class Plan(Record, eq=False):
    """Everything a build of one function needs, for one target.

    `params`, `results` and `sizes` as in the function, in ABI order; `fixed` sizes were substituted at build; `workspace`
    buffers live in caller-given memory, each at a 256-byte boundary, in order; `requires` is checked before any launch;
    `assumes` by `_validate`. `bounds`: polynomials of sizes with positive coefficients, each at most a number, as index
    arithmetic asks; launchers look at them first, in arithmetic that saturates.
    """

    name: str
    params: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    sizes: tuple[Sym, ...]
    fixed: tuple[tuple[Sym, int], ...]
    workspace: tuple[Buffer, ...]
    requires: tuple[Compare, ...]
    assumes: tuple[Assume, ...]
    steps: tuple[HostStep, ...]
    span: Span = NOWHERE
    bounds: tuple[Compare, ...] = ()


def kernels(steps: tuple[HostStep, ...]) -> Iterator[Kernel]:
    """Every kernel of a plan's steps, in order; one launched twice comes twice."""
    for step in steps:
        match step:
            case Launch():
                yield step.kernel
            case HostLoop() | HostIf():
                yield from kernels(step.steps)


def blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists directly below `stmt`."""
    match stmt:
        case For():
            return (stmt.body,)
        case If():
            return (stmt.then, stmt.orelse)
        case _:
            return ()


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement of `body`, outermost first, in textual order."""
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from walk(block)


def values(stmt: Stmt) -> tuple[Value, ...]:
    """The values that `stmt` itself holds (not those of statements below it), the element that it writes among them."""
    match stmt:
        case For():
            return ()
        case If():
            return (stmt.condition,)
        case _:
            return stmt.values


def exprs(stmt: Stmt) -> tuple[Expr, ...]:
    """The index expressions that `stmt` itself holds outside of its values."""
    match stmt:
        case For():
            return (stmt.lo, stmt.hi, stmt.step)
        case If():
            return ()
        case _:
            return stmt.exprs


def symbols(body: tuple[Stmt, ...]) -> frozenset[Sym]:
    """Every symbol that `body` uses, in indices, bounds and references; those that it declares included where used."""
    found: set[Sym] = set()
    for stmt in walk(body):
        if isinstance(stmt, Assign):
            found.add(stmt.sym)
        found.update(sym for each in exprs(stmt) for sym in each.syms())
        for value in values(stmt):
            found |= value_symbols(value)
    return frozenset(found)


def value_symbols(value: Value) -> frozenset[Sym]:
    """Every symbol in a value, but not those that its own loads' data define."""
    match value:
        case Ref(sym):
            return frozenset({sym})
        case Index(expr):
            return expr.syms()
        case Load():
            defined = {sym for sym, _ in value.data}
            inner = frozenset(s for e in value.index for s in e.syms()) - defined
            return inner.union(*(value_symbols(meaning) - defined for _, meaning in value.data))
        case _:
            return frozenset[Sym]().union(*(value_symbols(v) for v in operands(value)))


def moves(kernel: Kernel) -> Iterator[tuple[Operation, Moved]]:
    """Every copy of a kernel that goes on by itself, in textual order."""
    maps = kernel.map_of
    for stmt in walk(kernel.body):
        moved = stmt.moved(maps) if isinstance(stmt, Operation) else None
        if isinstance(stmt, Operation) and moved is not None:
            yield stmt, moved


def memory(body: tuple[Stmt, ...]) -> tuple[tuple[Load, ...], tuple[Load, ...]]:
    """The elements that `body` reads and those that it writes, as they stand in the text; atomics are both.

    Of a tile that is copied the first element stands for all; what a map is of does not stand in the text.
    """
    read: list[Load] = []
    written: list[Load] = []
    for stmt in walk(body):
        computed = values(stmt)
        if isinstance(stmt, Operation):
            written += stmt.writes
            read += (*stmt.reads, *stmt.barriers)
            named = (meaning for each in stmt.operands for _, meaning in each.first.data)
            computed = (*stmt.computed, *named)
        read.extend(node for value in computed for node in value_walk(value) if isinstance(node, Load))
    return tuple(read), tuple(written)
