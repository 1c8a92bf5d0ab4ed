"""What makes maps, copies of tiles and barriers in shared memory well formed, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from texpr.affine.expr import ZERO, Sym
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir import kernel as k
from texpr.ir.place import VALUED, Place, Rule
from texpr.ir.shared import overlaps
from texpr.ir.tensor_map import combined_as, element, element_of, judged
from texpr.ir.types import I32, U64
from texpr.ir.value import Buffer, Load, Value
from texpr.ir.value import walk as value_walk
from texpr.isa.levels import Level, Space
from texpr.support.limits import LARGEST_INT
from texpr.tma.elements import ELEMENTS
from texpr.tma.reduce import TYPES, Reduction

MOST_ALIGNMENT = 1024
LINE = 128
"""What every tile of shared memory is aligned to, in bytes."""

MOST_COUNT = 2**20 - 1
"""Arrivals, and bytes, that a barrier counts in a phase (PTX ISA, "mbarrier": "Size and alignment", "tx-count")."""

BULK = 16
"""Bytes of which a bulk copy's addresses and size are multiples."""

BULK_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def arrays_lie_right(kernel: k.Kernel) -> Iterator[str]:
    """An array's alignment is a power of two that shared memory can have; barriers are words of it."""
    for array in kernel.arrays:
        name, align = array.buffer.name, array.align
        if align & (align - 1) or not 1 <= align <= MOST_ALIGNMENT:
            yield f"{name} is aligned to {align} bytes, not to a power of two up to {MOST_ALIGNMENT}"
        if array.barrier and (array.space is not Space.SHARED or array.buffer.dtype != U64):
            yield f"{name} holds barriers, which are u64 in shared memory"


def shared_places_may_meet(kernel: k.Kernel) -> Iterator[str]:
    """Barriers, and what tiles and runs are copied to or from, lie apart from all else."""
    if not all(all(e.is_constant for e in a.buffer.shape) for a in kernel.arrays if a.space is Space.SHARED):
        return
    copied = {load.buffer for stmt in k.walk(kernel.body) for load in _tiles(stmt)}
    for one, other in overlaps(kernel):
        for array, beside in ((one, other), (other, one)):
            if array.barrier or array.buffer in copied:
                yield f"{array.buffer.name} lies where {beside.buffer.name} does"


def _tiles(stmt: k.Stmt) -> Iterator[Load]:
    """What a copy of a tile or a run moves in memory of the kernel."""
    match stmt:
        case k.CopyTensor():
            yield stmt.target
        case k.StoreTensor():
            yield stmt.source
        case k.CopyBulk():
            yield from (stmt.target, stmt.source)
        case _:
            pass


def maps_keep_the_rules(kernel: k.Kernel) -> Iterator[str]:
    """The hardware takes each map, at some sizes at least; the rest is checked before a launch."""
    for map in kernel.maps:
        if len(map.sizes) != (len(map.corners) + 2 if map.corners else len(map.box)) or len(map.sizes) != len(map.steps):
            yield f"{map.name} has {len(map.sizes)} sizes, {len(map.box)} extents of a box and {len(map.steps)} steps"
            continue
        try:
            found = judged(map)
        except ValueError as reason:
            yield f"{map.name}: {reason}"
        else:
            yield from (f"{map.name}: {finding}" for finding in found.violated)


def maps_are_there(kernel: k.Kernel) -> Iterator[str]:
    """What a copy names is a map of the kernel."""
    known = {map.name for map in kernel.maps}
    for stmt in k.walk(kernel.body):
        if isinstance(stmt, k.CopyTensor | k.StoreTensor | k.PrefetchMap) and stmt.map not in known:
            yield f"there is no map {stmt.map}"


def array_of(buffer: Buffer, kernel: k.Kernel) -> k.Array | None:
    """The array of the kernel's own that a buffer is."""
    return next((array for array in kernel.arrays if array.buffer is buffer), None)


def _map(name: str, at: Place) -> k.TensorMap | None:
    return next((map for map in at.kernel.maps if map.name == name), None)


def _barriers(stmt: k.Stmt) -> tuple[Load, ...]:
    """The barriers that a statement is about."""
    match stmt:
        case k.BarrierInit() | k.BarrierExpect() | k.BarrierArrive() | k.BarrierWait() | k.CopyTensor():
            return (stmt.barrier,)
        case k.CopyBulk():
            return () if stmt.barrier is None else (stmt.barrier,)
        case _:
            return ()


def barriers_are_barriers(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """What is waited at is an element of an array of barriers, and nothing else touches those."""
    meant = _barriers(stmt)
    for barrier in meant:
        array = array_of(barrier.buffer, at.kernel)
        if array is None or not array.barrier:
            yield f"{barrier.buffer.name} holds no barriers"
    held = [array.buffer for array in at.kernel.arrays if array.barrier]
    for load in _loads(k.values(stmt)) if held else ():
        if any(load.buffer is buffer for buffer in held) and not any(load is barrier for barrier in meant):
            yield f"{load.buffer.name} holds barriers, not numbers"


def _loads(values: tuple[Value, ...]) -> Iterator[Load]:
    return (node for value in values for node in value_walk(value) if isinstance(node, Load))


def barrier_counts_fit(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A barrier counts so far, and phases have parities."""
    match stmt:
        case k.BarrierInit() if not 1 <= stmt.count <= MOST_COUNT:
            yield f"a phase cannot wait for {stmt.count} arrivals"
        case k.BarrierExpect() if not 0 <= stmt.bytes <= MOST_COUNT:
            yield f"a phase cannot wait for {stmt.bytes} bytes"
        case k.BarrierWait():
            sizes: dict[Sym, Range] = {size: (0, LARGEST_INT) for size in at.kernel.sizes}
            lo, hi = Known(sizes).bounds(stmt.parity)
            if lo is None or hi is None or lo < 0 or hi > 1:
                yield f"{stmt.parity} is not known to be 0 or 1"
        case _:
            pass


def indices_are_in_scope(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Coordinates and parities name what is there."""
    if isinstance(stmt, k.CopyTensor | k.StoreTensor | k.CopyBulk | k.BarrierExpect | k.BarrierWait):
        unknown = at.scope.unknown(k.exprs(stmt))
        if unknown:
            yield f"no {', '.join(map(str, unknown))} in scope"


def tile_fits_its_map(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """One coordinate a dimension; a tile is of a shared array, of the tensor's type, and lies in it."""
    if not isinstance(stmt, k.CopyTensor | k.StoreTensor):
        return
    map, tile = _map(stmt.map, at), stmt.target if isinstance(stmt, k.CopyTensor) else stmt.source
    if map is None:
        return
    rows, offsets = stmt.rows, stmt.offsets if isinstance(stmt, k.CopyTensor) else ()
    if len(stmt.at) != (1 if rows else map.rank):
        yield f"{map.name} has {map.rank} dimensions, and is given {len(stmt.at)} coordinates"
    if len(offsets) != len(map.corners):
        yield f"{map.name} takes {len(map.corners)} offsets, and is given {len(offsets)}"
    if map.corners and isinstance(stmt, k.StoreTensor):
        yield f"{map.name} is in im2col mode, and no tile is stored so"
    if rows and (len(rows) != 4 or map.rank != 2 or map.tile[1] != 1 or map.interleave):
        yield f"four rows of a matrix are copied, in boxes of one row, and not {len(rows)} of {map.name}"
    if rows and isinstance(stmt, k.CopyTensor) and stmt.peers:
        yield "four rows go to one block alone"
    if rows and isinstance(stmt, k.StoreTensor) and stmt.reduce is not None:
        yield "four rows are stored, and not combined with what is there"
    if any(row.dtype != I32 for row in rows):
        yield "rows are numbered by i32"
    if tile.dtype != map.buffer.dtype:
        yield f"{tile.buffer.name} holds {tile.dtype}, {map.buffer.name} {map.buffer.dtype}"
    period = max(LINE, LINE * map.swizzle // BULK)
    yield from _shared_run(tile, map.room * max(1, len(rows)), period, at, LINE if rows else period)


def peers_are_there(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A box goes to blocks of the cluster, each once, which have met after the barrier was made: else it may come too early."""
    if not isinstance(stmt, k.CopyTensor) or not stmt.peers:
        return
    if list(stmt.peers) != sorted(set(stmt.peers)) or stmt.peers[0] != 0:
        yield f"peers {list(stmt.peers)} do not rise from 0"
    ranges: dict[Sym, Range] = {size: (0, LARGEST_INT) for size in at.kernel.sizes}
    ranges |= {axis.sym: (0, axis.extent.constant - 1) for axis in at.kernel.axes if axis.level is Level.CLUSTER}
    lo, hi = Known(ranges).bounds(stmt.first)
    if lo is None or hi is None or lo < 0 or hi + stmt.peers[-1] >= prod(at.kernel.cluster):
        yield f"block {stmt.first} + {stmt.peers[-1]} is not known to be one of the cluster's {prod(at.kernel.cluster)}"
    if not any(isinstance(other, k.Barrier) and other.level is Level.CLUSTER for other in at.kernel.body):
        yield "the blocks of the cluster do not meet before"


def _shared_run(first: Load, size: int, align: int, at: Place, step: int | None = None) -> Iterator[str]:
    """What is wrong with `size` bytes from `first` on, of a shared array aligned to `align`, at a multiple of it or `step`."""
    name, array = first.buffer.name, array_of(first.buffer, at.kernel)
    if array is None or array.space is not Space.SHARED or array.barrier:
        yield f"{name} is no shared array"
        return
    if array.align % align:
        yield f"{name} is aligned to {array.align} bytes, and a tile to {align}"
    if len(first.index) != first.buffer.rank:
        return
    offset, room = k.offset(first) * first.dtype.bytes, prod(e.constant for e in array.buffer.shape) * first.dtype.bytes
    rest = offset % (step or align)
    if rest.is_constant and rest is not ZERO:
        yield f"a tile in {name} begins {rest} bytes behind a multiple of {step or align}"
    if size > room or (offset.is_constant and not 0 <= offset.constant <= room - size):
        yield f"{size} bytes do not lie in {name}, which has {room}"


def reduction_is_of_the_type(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The engine combines by these operations, of these types."""
    if not isinstance(stmt, k.StoreTensor | k.CopyBulk) or stmt.reduce is None:
        return
    map = _map(stmt.map, at) if isinstance(stmt, k.StoreTensor) else None
    kind = element(stmt.source.dtype) if map is None else element_of(map)
    if isinstance(stmt, k.CopyBulk) and (travels := combined_as(stmt.reduce, stmt.source.dtype)) is not None:
        kind = ELEMENTS[travels]
    if stmt.reduce not in BULK_REDUCTIONS:
        yield f"no tile is reduced by {stmt.reduce}"
    elif kind.name not in TYPES[Reduction(stmt.reduce)] or stmt.source.dtype.name in ("tf32", "bool"):
        yield f"no tile of {stmt.source.dtype} is reduced by {stmt.reduce}"


def stored_tensor_may_be_written(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The kernel says that it writes what the map is of."""
    map = _map(stmt.map, at) if isinstance(stmt, k.StoreTensor) else None
    if map is not None and map.buffer.name not in at.kernel.written:
        yield f"{map.buffer.name} is not said to be written"


def bulk_copy_is_of_one_run(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """From a buffer of the kernel to a shared array, whose barrier it arrives at, or back; in multiples of 16 bytes."""
    if not isinstance(stmt, k.CopyBulk):
        return
    size = stmt.count * stmt.source.dtype.bytes
    inward = stmt.target.buffer not in at.kernel.buffers
    near, far = (stmt.target, stmt.source) if inward else (stmt.source, stmt.target)
    if size <= 0 or size % BULK:
        yield f"{stmt.count} elements of {stmt.source.dtype} are {size} bytes, no multiple of {BULK}"
    if near.dtype != far.dtype:
        yield f"{near.buffer.name} holds {near.dtype}, {far.buffer.name} {far.dtype}"
    if far.buffer not in at.kernel.buffers:
        yield f"{far.buffer.name} is not in global memory"
    elif far.buffer.role != "local" and (far.buffer.align or far.dtype.bytes) % BULK:
        yield f"{far.buffer.name} need not begin at a multiple of {BULK} bytes"
    if not inward and far.buffer.name not in at.kernel.written:
        yield f"{far.buffer.name} is not said to be written"
    if inward is (stmt.barrier is None):
        yield "a copy to shared memory arrives at a barrier, and no other does"
    if inward and stmt.reduce is not None:
        yield "a copy to shared memory combines nothing with what is there"
    yield from _counted_right(stmt, at)
    yield from _shared_run(near, size, BULK, at)


def _counted_right(stmt: k.CopyBulk, at: Place) -> Iterator[str]:
    """What is wrong with the number of elements that a kernel computes."""
    if stmt.exactly is None or not stmt.exactly.is_constant:
        return
    count = stmt.exactly.constant
    if not 0 < count <= stmt.count or count * stmt.source.dtype.bytes % BULK:
        yield f"{count} of {stmt.count} elements of {stmt.source.dtype} are no multiple of {BULK} bytes, or not among them"


_NEEDED: dict[type[k.Stmt], tuple[type[k.Stmt], str]] = {
    k.CopyTensor: (k.BarrierWait, "waits for no copies of tiles"),
    k.StoreTensor: (k.WaitBulk, "waits for no stores of tiles"),
    k.BarrierWait: (k.BarrierInit, "makes no barriers"),
    k.WaitBulk: (k.CommitBulk, "commits no stores of tiles"),
}


def what_is_needed_is_there(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A kernel that starts copies waits for them somewhere; whether in time, the emulator sees."""
    needed = _NEEDED.get(type(stmt))
    if isinstance(stmt, k.CopyBulk):
        needed = _NEEDED[k.StoreTensor if stmt.barrier is None else k.CopyTensor]
    if needed is not None and not any(isinstance(other, needed[0]) for other in k.walk(at.kernel.body)):
        yield f"the kernel {needed[1]}"
    if isinstance(stmt, k.WaitBulk) and stmt.pending < 0:
        yield f"{stmt.pending} groups cannot be left"


def fence_is_known(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Fences are of two kinds."""
    if isinstance(stmt, k.Fence) and stmt.kind not in ("async", "init"):
        yield f"there is no fence {stmt.kind}"


TILE_HEAD_RULES = (arrays_lie_right, shared_places_may_meet, maps_keep_the_rules, maps_are_there)
"""Those of a kernel's head."""

_TILES = (k.CopyTensor, k.StoreTensor)

TILE_RULES: Mapping[Rule, tuple[type[k.Stmt], ...]] = {
    barriers_are_barriers: VALUED,
    barrier_counts_fit: (k.BarrierInit, k.BarrierExpect, k.BarrierWait),
    indices_are_in_scope: (*_TILES, k.CopyBulk, k.BarrierExpect, k.BarrierWait),
    tile_fits_its_map: _TILES,
    peers_are_there: (k.CopyTensor,),
    reduction_is_of_the_type: (k.StoreTensor, k.CopyBulk),
    stored_tensor_may_be_written: (k.StoreTensor,),
    bulk_copy_is_of_one_run: (k.CopyBulk,),
    what_is_needed_is_there: (*_NEEDED, k.CopyBulk),
    fence_is_known: (k.Fence,),
}
"""Each rule of a statement, and the kinds of statements of which it says anything."""
