"""What no box of lanes goes below where rows begin anywhere in a sector.

Let rows of a stream begin at each multiple of g bytes equally often, elements at some of them, and let a window (a sector or a
line) have q = size / g of these units. A box of lanes has the same columns P in every row. Over q shifts of a row, one unit
each, its columns touch |P − {0 … q − 1}| windows in all: one for each place, of any shift, from which a window reaches one of
them. That is |P| + q − 1 or more (of two finite sets of integers |A + B| ≥ |A| + |B| − 1). So a row costs (|P| + q − 1) / q
windows on the average at least, and a warp with r rows and u units in all (u + (q − 1) r) / q.

Rows of two streams bound each other as sectors do (`least`): if at most μ iterations lie in one row of a and one of b, then
r_a · r_b · μ ≥ n. Lanes of one row that no window joins count as several rows, so those of one lie within n windows. Where rows
begin where windows do, these are counted instead.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, prod

from texpr.mapping.least import Window, cheapest, shared_by, together
from texpr.mapping.streams import Band, Stream
from texpr.mapping.weights import WEIGHTS


def least_of_rows(band: Band) -> Fraction:
    """A bound on `Cost.weighted` of every box, conflicts of banks left out; 0 where nothing is open, and so nothing known."""
    if all(extent is not None for extent in band.extents):
        return Fraction(0)
    warps = Fraction(prod(band.counted), band.request.lanes)
    total = Fraction(WEIGHTS.request * sum(stream.trips for stream in band.streams))
    for weight, size in zip(WEIGHTS[:2], (band.request.sector, band.request.line), strict=True):
        total += weight * _windows(band, size)
    return warps * total


def _windows(band: Band, size: int) -> Fraction:
    """Windows of `size` bytes that a warp touches at least, on the average, over all streams, as often as they come."""
    lanes, fixed = band.request.lanes, Fraction(0)
    weights: dict[Window, int] = {}  # equal windows are touched alike
    for stream in (s for s in band.streams if not s.shared and s.index is None):
        grain = _grain(band, stream, size)
        if grain == size:
            window, weight = Window(stream.steps, stream.width, size), stream.trips * size
        else:
            each = Window(stream.steps, stream.width, stream.width)
            units = Fraction(lanes, together(each, each, band.spans)[0]) * (stream.width // grain)
            fixed += stream.trips * units * grain / size
            window, weight = Window(stream.steps, stream.width, size * lanes), stream.trips * (size - grain)
        weights[window] = weights.get(window, 0) + weight
    table, _ = shared_by(list(weights), band.spans)
    return fixed + Fraction(cheapest(list(weights.values()), table, lanes)[0], size)


def _grain(band: Band, stream: Stream, size: int) -> int:
    """Bytes at each multiple of which rows begin equally often, `size` where they begin where windows do.

    Rows are what open loops move by more than lanes of one row can lie apart, and open loops inside of the band by anything.
    Elements that may overlap in part are not looked at.
    """
    if any(step % stream.width for step in stream.steps):
        return size
    far = [s for s, extent in zip(stream.steps, band.extents, strict=True) if extent is None and abs(s) > size * 32]
    inner = [step for step, extent in stream.outer if extent is None]
    grain = gcd(size, *far, *inner)
    return grain if stream.width % grain == 0 else size
