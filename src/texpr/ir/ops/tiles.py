"""Copies of boxes of tensors by an engine, through tensor maps of the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir.operation import Agent, Brings, Group, Joins, Moved, Operation
from texpr.ir.operation.form import (
    Coordinates,
    Flag,
    Indexed,
    Maybe,
    Name,
    Numbers,
    Several,
    Verb,
    Word,
    barrier,
    reads,
    writes,
)
from texpr.ir.operation.tensor_map import element_of
from texpr.ir.ops.bulk import WaitBulk
from texpr.ir.ops.engine import wrong_combination, wrong_run
from texpr.ir.ops.meeting import Barrier as Meeting
from texpr.ir.ops.phases import BarrierWait
from texpr.ir.value import Load, Value
from texpr.ir.value.types import I32
from texpr.isa.cuda import TMA, TMA_ROWS
from texpr.isa.engine import CHUNK, LINE
from texpr.isa.levels import Level
from texpr.support.diagnostic import CompilerBug
from texpr.support.limits import LARGEST_INT

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing


def map_is_there(stmt: Stmt, at: Place) -> Iterator[str]:
    """The map of a copy is one of the kernel's."""
    if isinstance(stmt, CopyTensor | StoreTensor | PrefetchMap) and at.map(stmt.map) is None:
        yield f"there is no map {stmt.map}"


def tile_fits_its_map(stmt: Stmt, at: Place) -> Iterator[str]:
    """There is a coordinate for each dimension; the tile has the tensor's type and lies within a shared array."""
    if not isinstance(stmt, CopyTensor | StoreTensor):
        return
    map, tile = at.map(stmt.map), stmt.target if isinstance(stmt, CopyTensor) else stmt.source
    if map is None:
        return
    rows, offsets = stmt.rows, stmt.offsets if isinstance(stmt, CopyTensor) else ()
    if len(stmt.at) != (1 if rows else map.rank):
        yield f"{map.name} has {map.rank} dimensions, and is given {len(stmt.at)} coordinates"
    if len(offsets) != len(map.corners):
        yield f"{map.name} takes {len(map.corners)} offsets, and is given {len(offsets)}"
    if map.corners and isinstance(stmt, StoreTensor):
        yield f"{map.name} is in im2col mode, and no tile is stored so"
    if rows and (len(rows) != 4 or map.rank != 2 or map.tile[1] != 1 or map.interleave):
        yield f"four rows of a matrix are copied, in boxes of one row, and not {len(rows)} of {map.name}"
    if rows and isinstance(stmt, CopyTensor) and stmt.peers:
        yield "four rows go to one block alone"
    if rows and isinstance(stmt, StoreTensor) and stmt.reduce is not None:
        yield "four rows are stored, and not combined with what is there"
    if any(row.dtype != I32 for row in rows):
        yield "rows are numbered by i32"
    if tile.dtype != map.buffer.dtype:
        yield f"{tile.buffer.name} holds {tile.dtype}, {map.buffer.name} {map.buffer.dtype}"
    period = max(LINE, LINE * map.swizzle // CHUNK)
    yield from wrong_run(tile, map.room * max(1, len(rows)), period, at, LINE if rows else period)


def peers_are_there(stmt: Stmt, at: Place) -> Iterator[str]:
    """The peers are distinct blocks of the cluster, and a cluster barrier comes before, as each must have initialised its
    barrier."""
    if not isinstance(stmt, CopyTensor) or not stmt.peers:
        return
    if list(stmt.peers) != sorted(set(stmt.peers)) or stmt.peers[0] != 0:
        yield f"peers {list(stmt.peers)} do not rise from 0"
    ranges: dict[Sym, Range] = {size: (0, LARGEST_INT) for size in at.kernel.sizes}
    ranges |= {axis.sym: (0, axis.extent.constant - 1) for axis in at.kernel.axes if axis.level is Level.CLUSTER}
    lo, hi = Known(ranges).bounds(stmt.first)
    if lo is None or hi is None or lo < 0 or hi + stmt.peers[-1] >= prod(at.kernel.cluster):
        yield f"block {stmt.first} + {stmt.peers[-1]} is not known to be one of the cluster's {prod(at.kernel.cluster)}"
    met = (other for other in at.kernel.body if isinstance(other, Meeting) and not other.relaxed)
    if not any(other.level is Level.CLUSTER for other in met):
        yield "the blocks of the cluster do not meet before"


def tile_is_combined_by_the_engine(stmt: Stmt, at: Place) -> Iterator[str]:
    """The engine supports the reduction for the type of the elements."""
    map = at.map(stmt.map) if isinstance(stmt, StoreTensor) else None
    if isinstance(stmt, StoreTensor) and map is not None:
        yield from wrong_combination(stmt.reduce, stmt.source, element_of(map))


def stored_tensor_may_be_written(stmt: Stmt, at: Place) -> Iterator[str]:
    """The kernel lists the tensor of a stored map as written."""
    map = at.map(stmt.map) if isinstance(stmt, StoreTensor) else None
    if map is not None and map.buffer.name not in at.kernel.written:
        yield f"{map.buffer.name} is not said to be written"


def tile_is_waited_for(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel with copies also waits for them; that it waits in time is checked by the emulator."""
    if isinstance(stmt, CopyTensor) and not at.has(BarrierWait):
        yield "the kernel waits for no copies of tiles"
    if isinstance(stmt, StoreTensor) and not at.has(WaitBulk):
        yield "the kernel waits for no stores of tiles"


class CopyTensor(Operation, eq=False):
    """Starts a copy of the box of `map` at coordinates `at`, innermost first, to the tile whose first element is `target`.

    Coordinates are signed; elements outside of the tensor are filled. The bytes of the whole box complete at `barrier`. Until
    its phase has completed, no thread may access the tile.

    With `peers` the box goes to several blocks of the cluster, of ranks `first` + each of `peers` (multicast): to the same tile
    of each, with its bytes counted at the same barrier of each. Where each block of a pair has half of the array
    (`Array.halved`), it goes to this block's half, for both, and counts at this block's barrier.

    `led`: its bytes are counted at the barrier of the first block of the pair that this block is one of.

    In im2col mode `offsets`, one for each spatial dimension, W first, are added to every pixel; `at` is a channel, a pixel of
    the bounding box, and an image. With `rows` the tile is four rows of a matrix (gather4), and `at` is a column alone.
    """

    FORM = (
        Word("tensor"),
        Word("load"),
        writes("target"),
        Word("="),
        Coordinates("at", "map"),
        Maybe("offsets", (), "offsets", (Coordinates("offsets"),)),
        Maybe("rows", (), "rows", (Several("rows"),)),
        Word("arrives"),
        barrier("barrier"),
        Maybe("peers", (), "to", (Numbers("peers"), Word("from"), Indexed("first"))),
        Flag("led"),
    )
    RULES = (map_is_there, tile_fits_its_map, peers_are_there, tile_is_waited_for)
    AGENT = Agent.ENGINE

    target: Load
    map: str
    at: tuple[Expr, ...]
    barrier: Load
    peers: tuple[int, ...] = ()
    first: Expr = ZERO
    offsets: tuple[Expr, ...] = ()
    rows: tuple[Value, ...] = ()
    led: bool = False

    @property
    def by(self) -> str:
        """The name of this kind of copy in schedules."""
        return "tma"

    @property
    def needs(self) -> tuple[str, ...]:
        """The target features for copies of tiles and, with `rows`, for gather4."""
        return (TMA, *((TMA_ROWS,) if self.rows else ()))

    @property
    def tiles(self) -> tuple[Load, ...]:
        """The tile in shared memory that the engine writes."""
        return (self.target,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Brings:
        """Completes at its barrier by the bytes of the box, filled elements included."""
        return Brings(self.barrier, expr(maps[self.map].bytes * max(1, len(self.rows))), self.led)

    def moved(self, maps: Mapping[str, TensorMap]) -> Moved:
        """The copy of a box."""
        map = maps[self.map]
        return Moved(
            "tma",
            map.buffer,
            self.target.buffer,
            map.bytes * max(1, len(self.rows)),
            map=self.map,
            corner=None if self.rows else self.at,
            tile=self.target,
            peers=self.peers,
            first=self.first,
        )

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        ends = f"{to.place(self.target)}, {to.map(self.map)}, {to.place(self.barrier)}"
        at, offsets = (", ".join(map(to.index, each)) for each in (self.at, (*self.at, *self.offsets)))
        if self.led:
            yield f"tx_load_tensor_led({ends}, {at});"
            return
        if self.peers and self.rows:
            raise CompilerBug(f"kernel {to.kernel.name} shares a copy of four rows")
        array = next((each for each in to.kernel.arrays if each.buffer is self.target.buffer), None)
        if self.peers and (array is None or array.halved is None):
            mask = to.bits(sum(1 << peer for peer in self.peers), self.first)
            yield f"tx_load_{'columns' if self.offsets else 'tensor'}_multicast({ends}, {mask}, {offsets});"
        elif self.rows:
            yield f"tx_load_rows({ends}, {at}, {', '.join(map(to.value, self.rows))});"
        else:
            yield f"tx_load_{'columns' if self.offsets else 'tensor'}({ends}, {offsets});"

    def does(self, effects: Effects) -> None:
        """Starts the copy."""
        effects.sends(self)


class StoreTensor(Operation, eq=False):
    """Starts a copy of the tile whose first element is `source` to the box of `map` at coordinates `at`, innermost first.

    Elements outside of the tensor are not written. `reduce`: add, min, max, and, or, xor, by which each element is combined
    with the tensor's; for u32 also inc and dec, which wrap at the tile's element. No thread may write the tile before the
    `WaitBulk` of the thread that started the copy.

    With `rows` the tile is four rows, stored to these rows of a matrix (scatter4): `at` is a column alone. Rows outside of the
    matrix are not written; the others must differ, as the order of the four stores is undefined.
    """

    FORM = (
        Word("tensor"),
        Verb("reduce", "store", "reduce"),
        Coordinates("at", "map"),
        Maybe("rows", (), "rows", (Several("rows"),)),
        Word("="),
        reads("source"),
    )
    RULES = (map_is_there, tile_fits_its_map, tile_is_combined_by_the_engine, stored_tensor_may_be_written, tile_is_waited_for)
    AGENT = Agent.ENGINE

    map: str
    at: tuple[Expr, ...]
    source: Load
    reduce: str | None = None
    rows: tuple[Value, ...] = ()

    @property
    def by(self) -> str:
        """The name of this kind of copy in schedules."""
        return "tma"

    @property
    def needs(self) -> tuple[str, ...]:
        """The target features for copies of tiles and, with `rows`, for scatter4."""
        return (TMA, *((TMA_ROWS,) if self.rows else ()))

    @property
    def tiles(self) -> tuple[Load, ...]:
        """The tile in shared memory that the engine reads."""
        return (self.source,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Joins:
        """Joins the bulk group."""
        return Joins(Group.BULK)

    def moved(self, maps: Mapping[str, TensorMap]) -> Moved:
        """The copy of a box."""
        map = maps[self.map]
        return Moved(
            "tma",
            self.source.buffer,
            map.buffer,
            map.bytes * max(1, len(self.rows)),
            reduce=self.reduce,
            map=self.map,
            corner=None if self.rows else self.at,
            tile=self.source,
        )

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        verb = "store" if self.reduce is None else f"reduce_{self.reduce}"
        ends, at = f"{to.map(self.map)}, {to.place(self.source)}", ", ".join(map(to.index, self.at))
        if self.rows and self.reduce is not None:
            raise CompilerBug(f"kernel {to.kernel.name} combines four rows")
        if self.rows:
            yield f"tx_store_rows({ends}, {at}, {', '.join(map(to.value, self.rows))});"
        else:
            yield f"tx_{verb}_tensor({ends}, {at});"

    def does(self, effects: Effects) -> None:
        """Starts the copy."""
        effects.sends(self)


class PrefetchMap(Operation, eq=False):
    """Prefetches a tensor map into the cache of descriptors."""

    FORM = (Word("prefetch"), Name("map"))
    RULES = (map_is_there,)
    AGENT = Agent.ENGINE

    map: str

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield f"tx_prefetch({to.map(self.map)});"
