"""The kernel form: what a machine executes, with explicit threads, memory spaces and barriers, independent of vendors.

    plan      = parameters, checks, workspace, host steps
    host step = Launch kernel on grid | HostLoop sym < extent {step} | HostIf condition {step} {step}
        kernel    = axes, arrays, body; executed once for each point of the axes
    stmt      = For sym lo..hi step {stmt} | If value {stmt} {stmt} | an operation of `texpr.ir.ops`, whose names are here too

Values are those of `ir.value`: a `Load` names a parameter or an array of the kernel, a `Ref` a variable, and an axis' symbol
is an ordinary index symbol. Index expressions of loads and stores are per dimension; printers linearise them with the
array's strides (dense row-major where not given).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym
from texpr.ir import operation
from texpr.ir.instr import Instr
from texpr.ir.operation import Moved, Operation
from texpr.ir.operation.covered import Covered
from texpr.ir.operation.form import consecutive
from texpr.ir.operation.maps import TensorMap
from texpr.ir.ops.alone import Alone
from texpr.ir.ops.bulk import CommitBulk, CopyBulk, WaitBulk
from texpr.ir.ops.collective import Collective, CollectiveAsync
from texpr.ir.ops.columns import CollectiveAlone, CommitColumns, FenceColumns, FreeColumns, HaveColumns, TakeColumns
from texpr.ir.ops.copies import CommitAsync, CopyAsync, WaitAsync
from texpr.ir.ops.fences import Fence
from texpr.ir.ops.lanes import Exchange, Shuffle
from texpr.ir.ops.launches import AdmitLaunch, AwaitLaunches
from texpr.ir.ops.meeting import Barrier
from texpr.ir.ops.memory import Atomic, AtomicVector, Store, assign
from texpr.ir.ops.phases import BarrierArrive, BarrierExpect, BarrierInit, BarrierRelease, BarrierWait
from texpr.ir.ops.registers import Assign, Declare, let, postponed
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
    "AdmitLaunch", "Alone", "Array", "Assign", "Atomic", "AtomicVector", "AwaitLaunches", "Axis", "Barrier", "BarrierArrive",
    "BarrierExpect", "BarrierInit", "BarrierRelease", "BarrierWait", "Collective", "CollectiveAlone", "CollectiveAsync",
    "CommitAsync", "CommitBulk", "CommitColumns", "CommitWarpgroup", "CopyAsync", "CopyBulk", "CopyTensor", "Covered",
    "Declare", "Exchange", "Fence", "FenceColumns", "FenceWarpgroup", "For", "FreeColumns", "HaveColumns", "HostIf", "HostLoop",
    "HostStep", "If", "Kernel", "Launch", "Level", "LoadVector", "Operation", "Plan", "PrefetchMap", "Role", "Shuffle",
    "Space", "Stmt", "Store", "StoreTensor", "StoreVector", "TakeColumns", "TensorMap", "Together", "WaitAsync", "WaitBulk",
    "WaitWarpgroup", "assign", "blocks", "consecutive", "declared", "declares", "exprs", "indices", "kernels", "launches",
    "let", "memory", "moves", "postponed", "reassigned", "symbols", "value_symbols", "values", "walk",
]  # fmt: skip


class Axis(Record):
    """A hardware coordinate `sym` in 0..extent. `dim` is "x", "y" or "z" for GRID, CLUSTER and BLOCK.

    A CLUSTER axis is the position of a block in its cluster along a dimension: the index along the GRID axis of that dimension,
    modulo the extent. The extent of that axis is a multiple of the cluster's, and it starts at a multiple.

    A GRID axis with `base` (a symbol, passed as a kernel argument) has the value block index + base, so that the host can
    divide a launch into slabs where the device limits the grid.
    """

    sym: Sym
    level: Level
    extent: Expr
    dim: str = "x"
    base: Sym | None = None


class Array(Record, eq=False):
    """Memory that a kernel allocates (CLUSTER, SHARED, TENSOR, LANES, LOCAL). `buffer.shape` is constant. `reason`: why it is
    in this space, for `explain`.

    CLUSTER: the first index is the rank of the block in whose shared memory an element is; its offset is the same in each
    block. A block writes its own part only, and reads all parts.

    `align`: its alignment in bytes, a power of two up to 1024. `barrier`: its elements, u64 in shared memory, are barriers for
    the operations of `texpr.ir.ops.phases`.

    `halved`: each of the two blocks of a pair has the half of it, along that dimension, that its rank says, in its shared
    memory; `buffer` is of one half. One copy for both blocks fills a half (`CopyTensor.peers`), and what one thread starts for
    the pair reads both halves (`CollectiveAlone`); nobody else touches it.

    TENSOR: columns of 32 bits of tensor memory; a thread has the lane of its number. `at` is the first of them, of those that
    the kernel takes.

    `at`: in shared memory, its offset in bytes from the start of the block's shared memory; None: it overlaps no other array.
    Either all shared arrays of a kernel have an offset, or none. Two arrays whose byte ranges intersect *share* memory: a write
    to one overwrites the other's elements at these bytes, which may not be read before they are written again. Accesses to
    both, one of them a write, conflict like accesses to one element, and must be ordered. Barriers share memory with no array,
    nor does an array that tiles or runs are copied to or from (`CopyTensor`, `StoreTensor`, `CopyBulk`). `shared.overlaps`
    lists the pairs.
    """

    buffer: Buffer
    space: Space
    reason: str = ""
    align: int = 16
    barrier: bool = False
    at: int | None = None
    halved: int | None = None


class For(Record, eq=False):
    """`for sym in lo..hi by step`. `kind`: "serial", "unroll", "simd" (independent lanes: Level.LANE).

    `factor` of an unrolled loop: the number of copies of the body; 0 to unroll it completely, which needs a constant trip
    count. `reductions` of a simd loop: (variable, op) pairs, combined in any order. `uniform`: all threads of a block execute
    the same iterations, so that the body may contain barriers. `first`, `last`: so many turns differ from those between
    (`ir.kernel.turns.apart`).
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
    first: int = 0
    last: int = 0


class Role(Record):
    """Warps of a block that have work of their own: `warps` of them, from warp `first` on. `registers`: so many a thread, where
    roles share those of the block unevenly; 0 where all have as many."""

    name: str
    first: int
    warps: int
    registers: int = 0

    def __str__(self) -> str:
        """As in the text of a kernel."""
        return f"{self.name} {self.first} {self.warps}" + (f" registers {self.registers}" if self.registers else "")


class If(Record, eq=False):
    """`if condition`. `uniform`: the condition is equal in all threads of a block, so that the branches may contain
    barriers. `role`: the condition says that a thread is in one of these warps (`ir.kernel.roles`)."""

    condition: Value
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    uniform: bool = False
    span: Span = NOWHERE
    role: Role | None = None


Stmt: TypeAlias = For | If | Operation
"""An operation contains no statements."""


class Kernel(Record, eq=False):
    """One device function.

    `buffers`: the global memory that it accesses (parameters and workspace), in argument order; `scalars`: rank-0 inputs passed
    by value; `sizes`: integer arguments (sizes, host loop indices, slab bases), all 0 ≤ size < 2³¹. `written`: the names of the
    buffers that it writes, through maps too. `min_blocks`: the number of blocks that a multiprocessor should hold at once,
    which bounds registers; 0 for no requirement. `maps`: tensor maps for its copies of tiles; their tensors need not be in
    `buffers`. `warp`: the number of lanes in a warp (consecutive threads), a power of two. `instrs`: the instructions of its
    `Collective`s.
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
        """The number of consecutive threads that execute an operation with this `Operation.meets` together; `WARP` gives its
        lanes."""
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
        """The maps by name."""
        return {map.name: map for map in self.maps}

    @property
    def instr_of(self) -> dict[str, Instr]:
        """The instructions by name."""
        return {instr.name: instr for instr in self.instrs}

    @property
    def rank(self) -> Sym | None:
        """The cluster coordinate that is the rank of a block, if the cluster extends along one dimension."""
        along = [axis.sym for axis in self.axes if axis.level is Level.CLUSTER]
        return along[0] if len(along) == 1 else None


class Launch(Record, eq=False):
    """Launches `kernel` over its axes; extents of GRID and CORE axes are evaluated on the host. A zero extent launches
    nothing.

    `dependent`: it may start before the launch before it has ended, if there was one since the plan began; its threads wait
    for that themselves (`AwaitLaunches`).
    """

    kernel: Kernel
    dependent: bool = False


class HostLoop(Record, eq=False):
    """Executes the steps `extent` times in order; `sym` is passed to kernels as a size.

    `together`: how one launch may execute the whole loop with the same result; None where each step is launched by itself.
    """

    sym: Sym
    extent: Expr
    steps: tuple[HostStep, ...]
    together: Together | None = None


class Together(Record):
    """One launch for a host loop: its kernel `name` contains the loop, with a barrier of the grid after each step.

    `meeting`: the eight bytes of workspace for that barrier. It needs all blocks to be resident on the device at once.
    """

    name: str
    meeting: Buffer


class HostIf(Record, eq=False):
    """Executes the steps if a conjunction of facts about sizes and host loop indices holds."""

    conditions: tuple[Compare, ...]
    steps: tuple[HostStep, ...]


HostStep: TypeAlias = Launch | HostLoop | HostIf


class Plan(Record, eq=False):
    """Everything that a build of one function needs, for one target.

    `params`, `results` and `sizes` as in the function, in ABI order; `fixed`: sizes that the build substituted; `workspace`:
    buffers in memory that the caller lends, each aligned to 256 bytes, in order; `requires` is checked before any launch,
    `assumes` by `_validate`. `bounds`: upper bounds of polynomials of sizes with positive coefficients, which keep index
    arithmetic in range; launchers check them first, with saturating arithmetic.

    `wide`: another plan of the same function, which requires more: alignment of arrays, and divisibility of sizes. A launcher
    takes it where its checks pass. It has kernels of its own, and no further plan.
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
    wide: Plan | None = None

    @property
    def versions(self) -> tuple[Plan, ...]:
        """It, and the wide one, if there is such."""
        return (self,) if self.wide is None else (self, self.wide)


def launches(steps: tuple[HostStep, ...]) -> Iterator[Launch]:
    """Every launch of the steps, in order."""
    for step in steps:
        match step:
            case Launch():
                yield step
            case HostLoop() | HostIf():
                yield from launches(step.steps)


def kernels(steps: tuple[HostStep, ...]) -> Iterator[Kernel]:
    """Every kernel of the steps, in order; repeated for each launch."""
    return (launch.kernel for launch in launches(steps))


def blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists that `stmt` contains directly."""
    match stmt:
        case For():
            return (stmt.body,)
        case If():
            return (stmt.then, stmt.orelse)
        case _:
            return ()


def walk(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement of `body`, outermost first, in textual order."""
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from walk(block)


def collectives(kernel: Kernel) -> Iterator[tuple[Collective, Instr]]:
    """What lanes of a kernel do together, in textual order, each with its instruction."""
    yield from ((stmt, kernel.instr_of[stmt.name]) for stmt in walk(kernel.body) if isinstance(stmt, Collective))


def values(stmt: Stmt) -> tuple[Value, ...]:
    """The values of `stmt` itself, without those of nested statements; written elements are included."""
    match stmt:
        case For():
            return ()
        case If():
            return (stmt.condition,)
        case _:
            return stmt.values


def exprs(stmt: Stmt) -> tuple[Expr, ...]:
    """The index expressions of `stmt` itself, outside of values."""
    match stmt:
        case For():
            return (stmt.lo, stmt.hi, stmt.step)
        case If():
            return ()
        case _:
            return stmt.exprs


def symbols(body: tuple[Stmt, ...]) -> frozenset[Sym]:
    """Every symbol that occurs in an index, bound or reference of `body`, declared inside or not."""
    found: set[Sym] = set()
    for stmt in walk(body):
        if isinstance(stmt, Assign):
            found.add(stmt.sym)
        found.update(sym for each in exprs(stmt) for sym in each.syms())
        for value in values(stmt):
            found |= value_symbols(value)
    return frozenset(found)


def value_symbols(value: Value) -> frozenset[Sym]:
    """Every symbol in a value, except those that the data of its own loads define."""
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
    """Every asynchronous copy of a kernel, in textual order."""
    maps = kernel.map_of
    for stmt in walk(kernel.body):
        moved = stmt.moved(maps) if isinstance(stmt, Operation) else None
        if isinstance(stmt, Operation) and moved is not None:
            yield stmt, moved


def rounding(plan: Plan) -> dict[str, tuple[Instr, ...]]:
    """By the name of what a caller gets, the instructions whose own arithmetic may be in it: floating-point sums that are not
    rounded as IEEE 754 says. Each of a kernel's may be in all that it writes, and so may those in what it reads."""
    found: dict[str, dict[str, Instr]] = {}
    every = [(kernel, {instr.name: instr for instr in kernel.instrs if instr.sums}) for kernel in kernels(plan.steps)]
    before = -1
    while before != (before := sum(map(len, found.values()))):
        for kernel, own in every:
            read = (*(buffer.name for buffer in kernel.buffers), *(map.buffer.name for map in kernel.maps))
            through = {name: instr for each in (own, *(found.get(name, {}) for name in read)) for name, instr in each.items()}
            for name in kernel.written if through else ():
                found.setdefault(name, {}).update(through)
    returned = (*plan.results, *(buffer for buffer in plan.params if buffer.role == "inout"))
    named = dict.fromkeys(buffer.name for buffer in returned)
    return {name: tuple(found[name].values()) for name in named if name in found}


def declares(stmt: Stmt) -> bool:
    """Whether a statement only declares variables."""
    return isinstance(stmt, Operation) and stmt.DECLARES


def indices(stmt: Stmt) -> dict[Sym, Expr]:
    """The variables that a statement declares as index expressions."""
    new = stmt.bound if isinstance(stmt, Operation) else ()
    return {each.sym: each.value.expr for each in new if isinstance(each.value, Index)}


def declared(body: Iterable[Stmt]) -> frozenset[Sym]:
    """The variables that are declared in `body`, those of loops included."""
    own = (s.sym if isinstance(s, For) else [new.sym for new in s.bound] for s in walk(body) if isinstance(s, For | Operation))
    return frozenset(sym for each in own for sym in ([each] if isinstance(each, Sym) else each))


def reassigned(body: Iterable[Stmt]) -> frozenset[Sym]:
    """The variables that get another value than that of their declaration, in `body`."""
    return frozenset(new.sym for stmt in walk(body) if isinstance(stmt, Operation) for new in stmt.assigns)


def memory(body: tuple[Stmt, ...]) -> tuple[tuple[Load, ...], tuple[Load, ...]]:
    """The elements that `body` reads and those that it writes, as in the text; atomics are in both.

    A tile is represented by its first element; the tensors of maps are not included.
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
