"""The footprint and the traffic of a tile in closed form: boxes, bytes, sectors, and reuse.

A tile gives each loop a number of iterations. The box of a buffer is, along each dimension, the range of its subscripts over
them:  1 + Σ |step| · (tile − 1) + (greatest − least constant).  A row of it, of w bytes, takes w / s sectors of s bytes, and
one more if it is not aligned to a sector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Buffer
from texpr.isa.requests import row_bytes, windows
from texpr.planner.nest import NOMINAL, Nest, Touch
from texpr.support.record import Record

Tile = Mapping[Sym, int]
"""The iterations of each loop that a block runs between two barriers."""


class Form(Record):
    """The box of a buffer as a function of the tile: for each dimension the magnitudes of its steps by loop, and its constant
    range."""

    buffer: Buffer
    pitch: Expr
    """The extent of the last dimension."""
    dims: tuple[tuple[tuple[Sym, int], ...], ...]
    spread: tuple[int, ...]
    low: int
    """The least constant of the last subscript."""
    along: frozenset[Sym]
    bent: frozenset[Sym]
    """Loops on which the subscripts depend in an unknown way: the box holds for one iteration of each."""

    def box(self, tile: Tile) -> tuple[int, ...]:
        """The extents of the box."""
        return tuple(
            1 + wide + sum(step * (tile[sym] - 1) for sym, step in steps)
            for steps, wide in zip(self.dims, self.spread, strict=True)
        )

    def bytes_moved(self, tile: Tile, sector: int) -> float:
        """The traffic of the box in global memory: each `sector` of its rows, partial ones counted whole."""
        *outer, width = self.box(tile)
        size = self.buffer.dtype.bytes
        pitch = self.pitch
        whole = (not pitch.is_constant or pitch.constant * size % sector == 0) and self.low * size % sector == 0
        even = whole and all(step * tile[sym] * size % sector == 0 for sym, step in self.dims[-1] if tile[sym] > 1)
        return prod(outer) * row_bytes(width * size, size, sector, begins_even=even)


def form(touches: Sequence[Touch]) -> Form | None:
    """The bounding box of `touches`, all accesses of one buffer; None where they have none."""
    first = touches[0]
    if any(t.index is None or t.shape != first.shape for t in touches) or not first.index:
        return None
    dims: list[tuple[tuple[Sym, int], ...]] = []
    spread: list[int] = []
    for dim in range(len(first.index)):
        subscripts = [t.index[dim] for t in touches if t.index is not None]
        steps, fixed = subscripts[0].steps, subscripts[0].fixed
        if any(s.steps != steps or s.fixed is not fixed for s in subscripts):
            return None
        constants = [s.base.constant for s in subscripts]
        dims.append(tuple((sym, abs(step)) for sym, step in steps.items()))
        spread.append(max(constants) - min(constants))
    bent = frozenset(sym for part in first.index for sym in part.bent)
    along = bent | frozenset(sym for steps in dims for sym, _ in steps)
    low = min(t.index[-1].base.constant for t in touches if t.index)
    return Form(first.buffer, first.shape[-1], tuple(dims), tuple(spread), low, along, bent)


def accesses(nest: Nest, buffer: Buffer, tile: Tile) -> int:
    """The number of accesses of `buffer` in a tile, where repeated ones of a thread in one iteration count once."""
    seqs = {loop.sym for loop in nest.seqs}
    every = nest.of(buffer)
    return sum(prod(tile[s] for s in t.around if s not in seqs or t.along(s)) for t in every)


def warp_bytes(touch: Touch, lanes: Sequence[Mapping[Sym, int]], sector: int) -> int:
    """The bytes of global memory that one request of a warp, with its lanes at these iterations, transfers for `touch`."""
    size = touch.buffer.dtype.bytes
    if touch.index is None:
        return len(lanes) * sector
    strides: list[int] = []
    dense = 1
    for extent in reversed(touch.shape):
        strides.append(dense)
        dense *= extent.constant if extent.is_constant else NOMINAL
    given = touch.buffer.strides
    if given is not None:
        strides = [s.constant if s.is_constant else NOMINAL for s in reversed(given)]
    start = touch.index[-1].base.constant if touch.index else 0
    starts: list[int] = []
    for lane in lanes:
        at = start
        for part, stride in zip(touch.index, reversed(strides), strict=True):
            at += stride * sum(step * lane.get(sym, 0) for sym, step in part.steps.items())
        starts.append(at * size)
    return len(windows(starts, sector)) * sector
