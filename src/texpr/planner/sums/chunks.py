"""Sizes of the chunks in which running values are computed: of a row by a block, and of a long row by many blocks.

A block does a row in tiles of so many iterations that both what is read and what is written of a tile fit shared memory, with
as many blocks resident as threads allow. Each thread does a chunk of a tile, of an odd number of iterations, so that
neighbouring threads access different banks; what chunks add up to is done in chunks again, so that one warp does them.
"""

from __future__ import annotations

from texpr.affine.expr import Expr
from texpr.ir import program as ir
from texpr.ir.program.running import is_read, runnings
from texpr.ir.program.uses import loads
from texpr.isa.target import Target
from texpr.support.record import Record

THREADS = 256
"""The threads of a block."""

SIZES = (5, 7, 9, 11, 13)
"""What a thread may do of a tile, in iterations."""

PER_CHUNK = 3.0
"""What a chunk costs beside its iterations: what it adds up to is written, read twice, and read again as its start."""

RESERVED = 4096
"""The bytes of shared memory of a block that are kept for what chunks add up to."""

LEAST = 64
"""Rows of fewer iterations are left to one thread each."""

BLOCKS = 1024
"""So many blocks at least do several long rows together: some for each multiprocessor of any device."""

SHORTEST, LONGEST = 2048, 65536
"""The iterations that a block does at least, and at most, of a row that many share."""

SHARED = 16384
"""What a block does of a row of unknown length that many share."""


class Sizes(Record):
    """`tile` iterations at a time, in chunks of `chunk`, whose sums are in chunks of `part`, 0 for none."""

    tile: int
    chunk: int
    part: int

    def __str__(self) -> str:
        return f"tiles of {self.tile}, of which a thread does {self.chunk}"


def is_carried(loop: ir.Seq) -> bool:
    """Whether iterations of `loop`, of which there are some, read running values, each in a place of its own, and have no loops
    in them. Rows that data say are left: no proof tells the copies of their subscripts."""
    short = loop.extent.is_constant and loop.extent.constant < LEAST
    inside = tuple(ir.walk(loop.body))
    simple = not any(isinstance(s, ir.Par | ir.Seq) or any(load.data for load in loads(s)) for s in inside)
    found = runnings(loop)
    alone = all(each.target.buffer.rank == 0 for each in found)
    return not short and simple and alone and any(is_read(loop, each) for each in found)


def of_block(extent: Expr, element: int, target: Target) -> Sizes:
    """The sizes for rows of `extent` iterations in a block, each of which moves so many bytes."""
    long, threads = extent.constant if extent.is_constant else None, THREADS
    while long is not None and threads > target.warp and threads // 2 * SIZES[0] >= long:
        threads //= 2
    room = target.shared_multiprocessor // (target.resident_threads // THREADS) - RESERVED
    fitting = [size for size in SIZES if size * threads * max(1, element) <= room] or [SIZES[0]]

    def cost(size: int) -> float:
        tile = threads * size
        done = tile if long is None else -(-long // tile) * tile
        return done * (1 + PER_CHUNK / size)

    chunk = fitting[-1] if long is None else min(fitting, key=lambda size: (cost(size), size))
    many = threads // target.warp
    return Sizes(threads * chunk, chunk, many + 1 if many > 1 else 0)


def of_grid(extent: Expr, rows: int) -> int:
    """The iterations that a block does of each of so many rows; 0 where rows are short, or enough for all blocks."""
    if rows * 2 > BLOCKS // 2 or (extent.is_constant and extent.constant <= SHORTEST):
        return 0
    if not extent.is_constant:
        return SHARED
    size = SHORTEST
    while size < LONGEST and rows * (extent.constant // (2 * size)) >= BLOCKS:
        size *= 2
    return size
