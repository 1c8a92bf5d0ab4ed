"""The cost of a mapping, by counting: sectors, lines and requests of every warp of a band, without simulation.

A mapping is a list of digits of the thread number, fastest first: (loop, radix). The weight of a digit is the product of the
loop's radices before it, so a block covers a box of iterations, and so does a warp wherever the first digits multiply to 32.

The windows that a warp accesses depend on the relative offsets of its lanes and on the offset of the first one in a line. The
former are the same for all complete boxes; the latter takes each value of a subgroup of the integers mod 128 equally often
or, for loops of known extent, as often as is counted here. Warps at the end of a loop of known extent have a smaller box. So
the counts are exact for known extents; for open ones they are those of the interior.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import gcd, prod
from operator import add, lt, mul
from typing import TypeAlias

from texpr.affine.expr import Expr
from texpr.isa.memories import Coalescing
from texpr.isa.requests import REMEMBERED, conflicts, touching, windows
from texpr.mapping.cost.digits import Digits, of_lanes
from texpr.mapping.cost.streams import INSIDE, OPEN, Band, Stream
from texpr.mapping.cost.weights import WEIGHTS
from texpr.support.record import Mutable, Record, field

Box: TypeAlias = tuple[int, ...]
"""The iterations of a box along each loop of a band."""

_Point: TypeAlias = tuple[Expr | None, tuple[int, ...]]


class Cost(Record):
    """The cost of a whole band, or of one stream in it. `conflicts`: extra rounds due to bank conflicts in shared memory.
    `arithmetic`: instructions for indices and addresses; it decides between mappings with equal memory cost."""

    sectors: Fraction = Fraction(0)
    lines: Fraction = Fraction(0)
    requests: Fraction = Fraction(0)
    conflicts: Fraction = Fraction(0)
    arithmetic: Fraction = Fraction(0)

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.sectors + other.sectors,
            self.lines + other.lines,
            self.requests + other.requests,
            self.conflicts + other.conflicts,
            self.arithmetic + other.arithmetic,
        )

    def dominates(self, other: Cost) -> bool:
        """Pareto dominance: whether this is nowhere worse, and somewhere better."""
        own, others = self.vector, other.vector
        return own != others and all(a <= b for a, b in zip(own, others, strict=True))

    @property
    def vector(self) -> tuple[Fraction, Fraction, Fraction, Fraction, Fraction]:
        """The components in order."""
        return self.sectors, self.lines, self.requests, self.conflicts, self.arithmetic

    @property
    def weighted(self) -> Fraction:
        """The memory cost as one number: see `WEIGHTS`."""
        return sum((w * part for w, part in zip(WEIGHTS, self.vector[:-1], strict=True)), start=Fraction(0))

    @property
    def order(self) -> tuple[Fraction, Fraction]:
        """The sort key: memory, then arithmetic."""
        return self.weighted, self.arithmetic


class Warps(Mutable):
    """Counts for one band, memoised. `work`: the sets of lanes examined, which limits count.

    `lanes`: threads whose requests count as one, where that is not a warp.
    """

    band: Band
    lanes: int = 0
    work: int = 0
    _found: dict[tuple[Stream, Digits], Cost] = field(default_factory=dict[tuple[Stream, Digits], Cost])
    _bytes: dict[tuple[Expr | None, tuple[int, ...]], int] = field(
        default_factory=dict[tuple[Expr | None, tuple[int, ...]], int]
    )

    @property
    def side(self) -> int:
        """The number of threads in one request."""
        return self.lanes or self.band.request.lanes

    def cost(self, digits: Digits) -> Cost:
        """The cost of all warps of the band, over all streams. Lanes that wrap along a loop do so along its digits."""
        fine = self.band.refined
        if fine is not None and len(self.band.loops) == 1 and len(digits) == 1 and digits[0][1] % self.side == 0:
            extents = [e for e in fine.extents if e is not None]
            if len(extents) == len(fine.extents):
                inner = Warps(fine, self.lanes)
                found = inner.cost(tuple(reversed(tuple(enumerate(extents)))))
                self.work += inner.work
                return found
        return sum((self.of(stream, digits) for stream in self.band.streams), start=Cost())

    def of(self, stream: Stream, digits: Digits) -> Cost:
        """The cost of one stream for all warps of the band."""
        key = (stream, digits)
        if key not in self._found:
            self._found[key] = self._counted(stream, digits) if stream.index is None else self._evaluated(stream, digits)
        return self._found[key]

    def _counted(self, stream: Stream, digits: Digits) -> Cost:
        sectors = lines = requests = conflicts = 0
        lanes = lane_box(digits, len(self.band.loops), self.side)
        tile = box_of(digits, len(self.band.loops)) if lanes is None else lanes
        line = self.band.request.word if stream.shared else self.band.request.line
        for inside, blocks in self._kinds(tile):
            starts = _starts(stream, tile, blocks, line)
            each = sum(starts.values())
            if stream.shared:
                for warp in self._in_order(stream, digits, inside):
                    self.work += 1
                    requests += each
                    conflicts += _rounds(warp, starts, stream.width, self.band.request)
                continue
            for offsets in self._offsets(stream, digits, lanes, inside):
                requests += each
                self.work += 1
                found = _touched(offsets, starts, self.band.request)
                sectors += found[0]
                lines += found[1]
        share = Fraction(stream.times * INSIDE ** sum(1 for e in self.band.extents if e is None), line * self._open(tile))
        return Cost(sectors * share, lines * share, requests * share, conflicts * share)

    def _open(self, tile: Box) -> int:
        """The iterations of a box along loops of open extent."""
        return prod(radix for radix, extent in zip(tile, self.band.extents, strict=True) if extent is None)

    def _kinds(self, tile: Box) -> Iterator[tuple[Box, tuple[int | None, ...]]]:
        """Each kind of box, complete or truncated along some loops, and their number along each loop, as in `_starts`."""
        ways: list[list[tuple[int, int | None]]] = []
        for extent, radix in zip(self.band.extents, tile, strict=True):
            if extent is None:
                ways.append([(radix, None)])
                continue
            whole, rest = divmod(extent, radix)
            way: list[tuple[int, int | None]] = [(radix, whole)] if whole else []
            ways.append([*way, *([(rest, -whole)] if rest else [])])
        for kind in product(*ways):
            yield tuple(k[0] for k in kind), tuple(k[1] for k in kind)

    def _offsets(self, stream: Stream, digits: Digits, lanes: Box | None, inside: Box) -> Iterator[tuple[int, ...]]:
        """For each warp of a box the offsets of its lanes in bytes from the box's first iteration, without repetitions."""
        if lanes is not None:
            yield sums(tuple((step, count) for step, count in zip(stream.steps, inside, strict=True) if count > 1))
            return
        points = _points(digits, len(inside))
        for first in range(0, len(points), self.side):
            warp = (p for p in points[first : first + self.side] if all(i < n for i, n in zip(p, inside, strict=True)))
            places = {sum(i * s for i, s in zip(p, stream.steps, strict=True)) for p in warp}
            if places:
                yield tuple(sorted(places))

    def _in_order(self, stream: Stream, digits: Digits, inside: Box) -> Iterator[tuple[int | None, ...]]:
        """For each warp of a box the offset of each lane in bytes from the box's first iteration; None for an idle one."""
        points = _points(of_lanes(digits, self.side), len(inside))
        for first in range(0, len(points), self.side):
            lanes = points[first : first + self.side]
            warp = tuple(sum(map(mul, p, stream.steps)) if all(map(lt, p, inside)) else None for p in lanes)
            if any(at is not None for at in warp):
                yield warp

    def _evaluated(self, stream: Stream, digits: Digits) -> Cost:
        """The cost of a non-affine stream: of all of its warps, if they are few, or of those of a few boxes."""
        lanes = of_lanes(digits, self.side)
        points = _points(lanes, len(self.band.loops))
        tile = box_of(lanes, len(self.band.loops))
        ends = self.band.counted
        whole = self.band.is_small(stream)
        begins = product(*(range(0, e, r) for e, r in zip(ends, tile, strict=True)))
        found = [0, 0, 0, 0]
        for begin in begins if whole else ([min(n, (e - 1) // r) * r for e, r in zip(ends, tile, strict=True)] for n in FIRST):
            for first in range(0, len(points), self.side):
                warp = [tuple(map(add, begin, p)) for p in points[first : first + self.side]]
                inside = tuple(self._at(stream, p) if all(map(lt, p, ends)) else None for p in warp)
                if any(at is not None for at in inside):
                    found = list(map(add, found, self._asked(stream, inside)))
        share = Fraction(stream.trips)
        if not whole:
            share *= Fraction(prod(ends), len(points)) / max(1, found[2])
        return Cost(*(part * share for part in found))

    def _asked(self, stream: Stream, warp: tuple[int | None, ...]) -> tuple[int, int, int, int]:
        """Sectors, lines, requests and conflicts of one request of lanes at these bytes."""
        self.work += len(warp)
        if stream.shared:
            return 0, 0, 1, _conflicts(warp, 0, stream.width, self.band.request)
        return *touched(tuple(sorted({at for at in warp if at is not None})), 0, self.band.request), 1, 0

    def _at(self, stream: Stream, point: tuple[int, ...]) -> int:
        key = stream.index, point
        if key not in self._bytes:
            self._bytes[key] = _evaluate(stream, self.band, point)
        return self._bytes[key]


def _evaluate(stream: Stream, band: Band, point: tuple[int, ...]) -> int:
    assert stream.index is not None
    values = dict.fromkeys(stream.index.syms(), 0) | dict(zip(band.loops, point, strict=True))
    try:
        return stream.index.evaluate(values)
    except ZeroDivisionError:
        return 0


@lru_cache(REMEMBERED)
def touched(offsets: tuple[int, ...], start: int, request: Coalescing) -> tuple[int, int]:
    """Sectors and lines of elements at `offsets` from the byte `start`."""
    starts = [at + start for at in offsets]
    return len(windows(starts, request.sector)), len(windows(starts, request.line))


FIRST = 0, 1, 5
"""The boxes examined along each loop where there are many."""

FEW = 4
"""Up to so many starts, each is examined by itself."""


def _touched(offsets: tuple[int, ...], starts: dict[int, int], request: Coalescing) -> tuple[int, int]:
    """Sectors and lines of elements at `offsets`, summed over `starts` with their multiplicities."""
    if len(starts) <= FEW:
        found = [(touched(offsets, start, request), often) for start, often in starts.items()]
        return sum(f[0] * n for f, n in found), sum(f[1] * n for f, n in found)
    unit = gcd(request.line, request.sector, *starts)
    sectors, lines = touching(offsets, unit, request.sector), touching(offsets, unit, request.line)
    return (
        sum(sectors[start % request.sector // unit] * often for start, often in starts.items()),
        sum(lines[start // unit] * often for start, often in starts.items()),
    )


@lru_cache(REMEMBERED)
def sums(steps: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """The set of Σ step · index, sorted."""
    found = {0}
    for step, count in steps:
        if step:
            found = {at + step * n for at in found for n in range(count)}
    return tuple(sorted(found))


@lru_cache(REMEMBERED)
def box_of(digits: Digits, loops: int) -> Box:
    """The box of a block, in iterations along each loop."""
    box = [1] * loops
    for loop, radix in digits:
        box[loop] *= radix
    return tuple(box)


@lru_cache(REMEMBERED)
def lane_box(digits: Digits, loops: int, lanes: int) -> Box | None:
    """The box of a warp, if the first digits multiply to one."""
    first: list[tuple[int, int]] = []
    total = 1
    for loop, radix in digits:
        if total == lanes:
            break
        part = radix if total * radix <= lanes else lanes // total
        if lanes % (total * part) or radix % part:
            return None
        first.append((loop, part))
        total *= part
    return box_of(tuple(first), loops)


@lru_cache(REMEMBERED)
def _points(digits: Digits, loops: int) -> tuple[tuple[int, ...], ...]:
    """The iteration of each thread of a block, relative to its box."""
    found: list[tuple[int, ...]] = []
    for thread in range(prod(radix for _, radix in digits)):
        point, weight = [0] * loops, [1] * loops
        for loop, radix in digits:
            point[loop] += thread % radix * weight[loop]
            weight[loop] *= radix
            thread //= radix
        found.append(tuple(point))
    return tuple(found)


def _starts(stream: Stream, tile: Box, blocks: tuple[int | None, ...], line: int) -> dict[int, int]:
    """How often a box starts at each byte of a line, times `line`.

    `blocks`: the number of boxes along each loop; 0 or less for the single box after so many complete ones.
    """
    spread, first = line, stream.first
    found = {0: 1}
    for step, radix, count in zip(stream.steps, tile, blocks, strict=True):
        if count is None:
            spread = gcd(spread, step * radix)
        elif count <= 0:
            first += step * radix * -count
        else:
            found = _moved(found, step * radix, count, line)
    times = 1
    for step, extent in stream.outer:
        if extent is None:
            spread = gcd(spread, step)
            times *= OPEN
        else:
            found = _moved(found, step, extent, line)
    total: dict[int, int] = {}
    for at, often in found.items():
        for other in range((at + first) % spread, line, spread):
            total[other] = total.get(other, 0) + often * spread * times
    return total


def _moved(found: dict[int, int], step: int, count: int, line: int) -> dict[int, int]:
    """`found` shifted by `count` steps of `step` bytes, mod `line`, summed."""
    period = line // gcd(line, step)
    total: dict[int, int] = {}
    for number in range(min(period, count)):
        often = (count - number + period - 1) // period
        for at, times in found.items():
            place = (at + number * step) % line
            total[place] = total.get(place, 0) + often * times
    return total


def _rounds(warp: tuple[int | None, ...], starts: dict[int, int], width: int, request: Coalescing) -> int:
    """The extra rounds due to bank conflicts, of lanes at these bytes, summed over `starts` with their multiplicities."""
    begins = Counter[int]()
    for start, often in starts.items():
        begins[start % request.word] += often
    return sum(often * _conflicts(warp, start, width, request) for start, often in begins.items())


@lru_cache(REMEMBERED)
def _conflicts(warp: tuple[int | None, ...], start: int, width: int, request: Coalescing) -> int:
    """The extra rounds due to bank conflicts for lanes at these bytes from `start`."""
    return conflicts([None if at is None else at + start for at in warp], width, request.banks, request.word)
