"""What a tile of a product asks of a machine: the bound of the model (`texpr.model`) for the nest in such tiles.

A block has `rows` × `columns` of the product. It brings a strip of both operands from the second-level cache, as far as they
are in bounds, and the tensor cores read them in shared memory as often as teams share them. The busiest unit decides; a
hundredth of what the others are asked for decides among equals.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, prod

from texpr.affine.expr import Sym
from texpr.ir.value.types import DType
from texpr.isa.levels import WARP
from texpr.isa.memories import COALESCING
from texpr.isa.registry import DEVICES
from texpr.isa.requests import stored
from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.model.bound import SYNC, Bound, bound
from texpr.model.machine import residence
from texpr.model.tiles import Goes, Strips, between, brought
from texpr.model.turns import Meet, Start, Wait, lanes, period
from texpr.model.work import Shape, Work
from texpr.planner.nest import Forbidden, Nest
from texpr.planner.tensor.product import Along
from texpr.support.record import Record, replace

LESSER = 0.01
"""What the units beside the busiest count."""

WAITS = 3.0
"""Microseconds from the start of a block to its first product, and from the last to its end: on an H200 blocks of one turn that
have a multiprocessor for themselves took 3 to 6 longer than what they move."""

FRAGMENT = 8
"""Elements of a row that lanes of a fragment hold in one register each (PTX ISA, figures of `mma` and `wgmma`)."""

SLOWER = 4.0
"""How much longer than their units need threads take for products: for addresses, borders and copies."""


class Asked(Record):
    """A tile of a product, by the loops over rows, columns and the sum.

    `depth`: of the sum, in a turn. `read`: bytes of shared memory that tensor cores read in a turn. `sync`: whether its
    instructions are those of a warp. `into`: the type of what it sums up; `shared`: bytes of a block, `registers`: of a thread.
    """

    loops: tuple[Sym, Sym, Sym]
    rows: int
    columns: int
    depth: int
    read: float
    threads: int
    registers: int
    shared: int
    of: DType
    into: DType
    sync: bool
    sums: int = 1
    """Results of a place, which are summed up in the same turns."""
    strips: tuple[float, float] = (1, 1)
    """Operands along rows, and along columns."""
    cluster: tuple[int, int] = (1, 1)
    """Blocks of a cluster along rows, which share columns, and along columns, which share rows."""
    halves: int = 1
    """Blocks each of which has such a part of the columns in its shared memory, for all of them."""
    along: Along = (frozenset(), frozenset())
    """The loops with which operands along rows vary, and those along columns."""
    goes: Goes = Goes()
    """How blocks go through tiles."""
    writes: int = 0
    """Bytes of an element of results, where they are of one array; 0 otherwise."""
    added: float = 0.0
    """Instructions of a warp that add up what a turn has left, which the next product waits for."""
    groups: int = 0
    """Warpgroups of a block, where turns are timed."""


def microseconds(asked: Asked, nest: Nest, target: Target) -> float:
    """The least time of the nest in such tiles, with what a block waits for; 0 where nobody says how fast the device is."""
    device = DEVICES.get(target.name)
    if device is None:
        return 0.0
    work, shape = _work(asked, nest, device), _shape(asked, nest)
    found = bound(work, shape, target, device)
    least = max(found.us, _alone(asked, found, shape, device), _turns(asked, nest, found, shape, device))
    return least + LESSER * sum(part.us or 0.0 for part in found.parts)


def most_saved(asked: Asked, nest: Nest, target: Target) -> float:
    """Microseconds that another way of blocks through tiles saves at most: what they wait for, and half of what lanes store."""
    device, tiles = DEVICES.get(target.name), tiles_in(asked, nest)
    if device is None or device.bandwidth.l2.value is None:
        return 0.0
    waits = between(Goes(), tiles / (device.multiprocessors.value or 1.0), 0.0, device)
    stored = tiles * asked.rows * asked.columns * _by_lanes(asked) / (device.bandwidth.l2.value * (device.clock.value or 1.0))
    return (waits or 0.0) + stored


def _by_lanes(asked: Asked) -> float:
    """Bytes of the second-level cache for an element that lanes store: each row of a fragment is a piece of a line."""
    piece = FRAGMENT * (asked.writes or asked.into.bytes)
    return stored((0,), piece, COALESCING.sector, COALESCING.line) / FRAGMENT


def tiles_in(asked: Asked, nest: Nest) -> int:
    """How many tiles there are."""
    return prod(_blocks(asked, nest))


def at_once(asked: Asked, nest: Nest, target: Target) -> int:
    """How many of these blocks all multiprocessors hold at once; 0 where nobody says how many there are."""
    device = DEVICES.get(target.name)
    if device is None:
        return 0
    return int(device.multiprocessors.value or 0) * residence(_shape(asked, nest), target, device).blocks


def _alone(asked: Asked, found: Bound, shape: Shape, device: Device) -> float:
    """The time of blocks of which a multiprocessor holds few: each works when it has its operands and until its results are
    away, and only others are at work then."""
    each = shape.blocks / (device.multiprocessors.value or 1.0)
    results = asked.rows * asked.columns * (asked.writes or asked.into.bytes)
    waits = between(asked.goes, each, results, device)
    return (found.us + (each * WAITS if waits is None else waits)) / min(found.residence.blocks, max(1, ceil(each)))


def _turns(asked: Asked, nest: Nest, found: Bound, shape: Shape, device: Device) -> float:
    """The time of all turns one behind the other, where lanes add up what each leaves: warpgroups that copy for themselves meet
    in each, and then none of them multiplies while they add; 0 where nothing is added."""
    clock, name = device.matrix.clock.value, _unit(asked.of)
    rate = device.matrix.rate(name).value
    if not asked.added or rate is None or clock is None:
        return 0.0
    product = asked.sums * asked.rows * asked.columns * asked.depth / asked.groups / rate
    held, each = found.residence.blocks, shape.blocks / (device.multiprocessors.value or 1.0)
    turns = _sums(asked, nest) * ceil(nest.trips[asked.loops[2]] / asked.depth)
    return ceil(each) * turns * _turn(product, asked.added, asked.goes.blocks > 0, asked.groups, held) / clock


def clocks_of(asked: Asked, device: Device) -> tuple[float | None, float | None]:
    """Clocks of a turn: of the tensor core, for the product of a warpgroup; of the engine, for what a block of its cluster
    brings, with its share of the second-level cache. None where a rate is not published."""
    rate, l2 = device.matrix.rate(_unit(asked.of)).value, device.bandwidth.l2.value
    rows, columns = asked.strips[0] * asked.rows / asked.cluster[1], asked.strips[1] * asked.columns / asked.cluster[0]
    product = asked.sums * asked.rows * asked.columns * asked.depth / (asked.groups or 1)
    brought = (rows + columns) * asked.depth * asked.of.bytes * (device.multiprocessors.value or 1.0)
    return None if rate is None else product / rate, None if l2 is None else brought / l2


@lru_cache(maxsize=1 << 10)
def _turn(product: float, added: float, apart: bool, groups: int, blocks: int) -> float:
    """Clocks of a turn of a block whose warpgroups wait for a product of so many, and add so much up."""
    meets = () if apart else (Meet(),)
    return period((Start(product), Wait(0), lanes(added), *meets), groups, blocks) / blocks


def require_filled(asked: Asked, nest: Nest, target: Target) -> None:
    """That not so much of a tile is beyond the rows, columns and terms that there are that threads multiply sooner, in as
    many blocks. What both bring from memory does not count. Raises Forbidden."""
    device = DEVICES.get(target.name)
    if device is None:
        return
    work, shape = replace(_work(asked, nest, device), l2=None, dram=None), _shape(asked, nest)
    threads = replace(work, products={}, shared=0.0, units={"fma": asked.sums * prod(nest.trips.values()) / WARP})
    if bound(work, shape, target, device).us > SLOWER * bound(threads, shape, target, device).us:
        tile = f"{asked.rows} × {asked.columns} × {asked.depth}"
        raise Forbidden(f"a tile of {tile} would be mostly padding, and threads are done sooner")


def _blocks(asked: Asked, nest: Nest) -> tuple[int, int, int]:
    """How many strips of rows there are, how many of columns, and how many such products beside each other."""
    rows, columns, _ = (nest.trips[sym] for sym in asked.loops)
    others = prod(_beside(asked, nest).values())
    return ceil(rows / asked.rows), ceil(columns / asked.columns), others


def _beside(asked: Asked, nest: Nest) -> dict[Sym, int]:
    """The loops over products beside each other."""
    return {loop.sym: nest.trips[loop.sym] for loop in nest.pars if loop.sym not in asked.loops}


def _sums(asked: Asked, nest: Nest) -> int:
    """How many products are summed up one after the other."""
    return prod(nest.trips[loop.sym] for loop in nest.seqs if loop.sym not in asked.loops)


def _shape(asked: Asked, nest: Nest) -> Shape:
    return Shape(prod(_blocks(asked, nest)), asked.threads, asked.registers, asked.shared)


def _work(asked: Asked, nest: Nest, device: Device) -> Work:
    rows, columns, along = (nest.trips[sym] for sym in asked.loops)
    across, down, others = _blocks(asked, nest)
    each = _sums(asked, nest)
    blocks, turns = across * down, each * ceil(along / asked.depth)
    size, (left, right) = asked.of.bytes, asked.strips
    moved = left * down * rows / asked.cluster[1] + right * across * columns / asked.cluster[0]
    name = _unit(asked.of)
    products = asked.sums * others * blocks * asked.rows * asked.columns * turns * asked.depth
    written = (left * asked.rows + right * asked.columns / asked.halves) * asked.depth * size
    results = rows * columns * (asked.writes if asked.goes.stored else _by_lanes(asked))
    strips = left * rows * along * size / across, right * columns * along * size / down
    one, other = asked.along
    beside = _beside(asked, nest)  # what neither varies with is a part of the sum, of which both have their own
    others_of = (prod(n for sym, n in beside.items() if sym in mine or sym not in one | other) for mine in asked.along)
    round = asked.goes.blocks or int(device.multiprocessors.value or 1)
    from_memory = brought(Strips(across, down, *strips, others, *others_of), asked.goes, round, device)
    return Work(
        issued=0,
        units={},
        products={name + SYNC * asked.sync: products},
        shared=others * blocks * turns * (asked.read + written) / (device.bandwidth.shared.value or 1.0),
        l2=others * (moved * each * along * size + results),
        dram=from_memory + others * rows * columns * (asked.writes or asked.into.bytes),
    )


def _unit(dtype: DType) -> str:
    """The name of a type as devices have it."""
    return "f8" if dtype.name.startswith("f8") else dtype.name.replace("u8", "i8")
