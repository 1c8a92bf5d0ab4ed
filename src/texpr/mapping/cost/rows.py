"""A lower bound on the cost of boxes of lanes where rows may start anywhere in a sector.

Let rows of a stream start at each multiple of g bytes equally often, elements at some of them, and let a window (a sector or
a line) have q = size / g of these units. A box of lanes has the same columns P in every row. Over the q shifts of a row, one
unit each, its columns touch |P − {0 … q − 1}| windows in all: one for each offset, of any shift, at which a window contains
one of them. That is at least |P| + q − 1 (for finite sets of integers |A + B| ≥ |A| + |B| − 1). So a row costs at least (|P|
+ q − 1) / q windows on average, and a warp with r rows and u units in all (u + (q − 1) r) / q.

Rows of two streams bound each other as sectors do (`least`): if at most μ iterations lie in one row of a and one of b, then
r_a · r_b · μ ≥ n. Lanes of one row without a common window count as several rows, so those of one row lie within n windows.
Where rows are aligned to windows, windows are counted instead.

A loop of known extent also shifts rows to each offset equally often, if its extent is a multiple of the number of offsets: so
a tile's rows start anywhere if those of the array do, though its first one may not.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, prod

from texpr.mapping.cost.least import Table, Window, cheapest, shared_by, together
from texpr.mapping.cost.streams import Band, Stream
from texpr.mapping.cost.weights import WEIGHTS
from texpr.support.record import Record


def least_of_rows(band: Band) -> Fraction:
    """A lower bound of `Cost.weighted` for every box, without bank conflicts.

    Where boxes do not fill the band, the bound of the cheapest number of lanes is taken for each warp.
    """
    lanes = band.request.lanes
    filled = prod(band.counted) % lanes == 0 and not any(e % min(lanes, 1 << (e - 1).bit_length()) for e in band.extents if e)
    found = [_Rows.of(band, size) for size in (band.request.sector, band.request.line)]
    requests = WEIGHTS.request * sum(stream.trips for stream in band.streams)

    def each(count: int) -> Fraction:
        return (requests + sum(w * rows.windows(count) for w, rows in zip(WEIGHTS[:2], found, strict=True))) / Fraction(count)

    return prod(band.counted) * (each(lanes) if filled else min(map(each, range(1, lanes + 1))))


class _Rows(Record):
    """Windows of `size` bytes: the least number of units for each lane, and rows, with their weights and the iterations that
    they share."""

    size: int
    fixed: Fraction
    weights: tuple[int, ...]
    table: Table

    @classmethod
    def of(cls, band: Band, size: int) -> _Rows:
        """The rows of `band`."""
        fixed = Fraction(0)
        weights: dict[Window, int] = {}  # equal windows are accessed alike
        for stream in (s for s in band.streams if not s.shared and s.index is None):
            grain = _grain(band, stream, size)
            if grain == size:
                window, weight = Window(stream.steps, stream.width, size), stream.trips * size
            else:
                each = Window(stream.steps, stream.width, stream.width)
                fixed += Fraction(stream.trips * stream.width, together(each, each, band.spans)[0] * size)
                window = Window(stream.steps, stream.width, size * band.request.lanes)
                weight = stream.trips * (size - grain)
            weights[window] = weights.get(window, 0) + weight
        return cls(size, fixed, tuple(weights.values()), shared_by(list(weights), band.spans)[0])

    def windows(self, lanes: int) -> Fraction:
        """The least average number of windows that a warp of so many lanes accesses, over all streams, weighted by
        executions."""
        return self.fixed * lanes + Fraction(cheapest(self.weights, self.table, lanes)[0], self.size)


def _grain(band: Band, stream: Stream, size: int) -> int:
    """The granularity in bytes at which rows start equally often, `size` where they are aligned to windows.

    Rows are separated by loops that move by more than the extent of a row's lanes, and by loops inside of the band or around
    it: open ones, and those that reach each offset equally often. Elements that may partly overlap are not handled.
    """
    if any(step % stream.width for step in stream.steps):
        return size

    def moves(step: int, extent: int | None) -> bool:
        return extent is None or extent % (size // gcd(size, step)) == 0

    far = [s for s, e in zip(stream.steps, band.extents, strict=True) if abs(s) > size * band.request.lanes and moves(s, e)]
    inner = [step for step, extent in stream.outer if moves(step, extent)]
    grain = gcd(size, *far, *inner)
    return grain if stream.width % grain == 0 else size
