"""The solver of σ: which digits of which loops are the lanes of a warp, and which the warps of a block.

First the boxes of lanes, 2^a × 2^b × …, are searched by branch and bound: cost is monotone, so the cost of a part of the
lanes is a lower bound. Where rows are short and no power of two, digits of exactly their length are tried too: lanes then
wrap from one row to the next. The search ends early if it reaches the lower bound for all mappings (`least`). Among warps
with equal memory cost the one with the least index arithmetic is taken, then the first; the mapping by shape comes first.
Then the remaining digits of a block's threads are chosen such that the block's footprint is least, so that its warps share
what they fetch, and among equals with the least arithmetic. The footprint of a team is the same for every mapping: there the
least arithmetic decides, with no more digits or comparisons than by shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import permutations
from math import comb, gcd, prod

from texpr.isa.memories import Coalescing
from texpr.isa.requests import REMEMBERED, touching
from texpr.mapping.cost.arithmetic import compared, least_of_warps, of_warps
from texpr.mapping.cost.digits import Digits, of_lanes
from texpr.mapping.cost.least import Least, least
from texpr.mapping.cost.rows import least_of_rows
from texpr.mapping.cost.streams import Band
from texpr.mapping.cost.warps import Cost, Warps, box_of, sums, touched
from texpr.mapping.cost.weights import WEIGHTS
from texpr.support.record import Mutable, Record, field, replace

WORK = 60_000
"""The sets of lanes examined before the search ends with the best so far."""

WORTH = 9, 10
"""A guarded band of a team deviates from the mapping by shape where the memory cost falls below this fraction: the cost of
partial tiles is not counted, and an array may have few iterations along a loop with many in a tile."""

NARROW = 3
"""The most short loops across which lanes may wrap."""

NEAR = 5
"""The most loops over which the warps of a block are distributed."""

FEW = 64
"""Up to so many boxes, those of up to four loops, are enumerated without a bound first."""

FRONT = 6
"""The size of the Pareto front that is kept."""


class Found(Record):
    """The result of a search: see `Solution`."""

    cost: Cost
    shape: Cost
    front: tuple[tuple[Digits, Cost], ...]
    cut: bool
    work: int


class Solution(Record, dict=True):
    """The digits of a block's threads, fastest first, their cost, and its bounds.

    Bounds are computed on demand, and so are costs where there was no choice, and no `search`.
    """

    band: Band
    digits: Digits
    search: Found | None

    @cached_property
    def _found(self) -> Found:
        return self.search or _alone(self.band, self.digits)

    @property
    def cost(self) -> Cost:
        """The cost of the digits."""
        return self._found.cost

    @property
    def shape(self) -> Cost:
        """The cost of the mapping by shape."""
        return self._found.shape

    @property
    def front(self) -> tuple[tuple[Digits, Cost], ...]:
        """The Pareto front: digits of warps that no other dominates, with their costs."""
        return self._found.front

    @property
    def cut(self) -> bool:
        """Whether the search was ended by its limit."""
        return self._found.cut

    @property
    def work(self) -> int:
        """The sets of lanes that were examined."""
        return self._found.work

    @cached_property
    def least(self) -> Least:
        """A lower bound for all mappings."""
        return least(self.band)

    @cached_property
    def of_rows(self) -> Fraction:
        """A lower bound for boxes where rows start anywhere, or 0."""
        return least_of_rows(self.band)

    @property
    def gap(self) -> Fraction:
        """The ratio of memory cost to the lower bound: 1 where it is optimal, for any layout of shared arrays."""
        return self.cost.weighted / self.least.weighted if self.least.weighted else Fraction(1)

    @property
    def certificate(self) -> str:
        """The certificate: the mapping is optimal, or at most so many times as expensive."""
        if not self.least.proved:
            return "not proved: an access is no sum of its indices"
        if self.gap <= 1:
            return "globally optimal"
        if self.of_rows <= self.least.weighted:
            return f"at most {float(self.gap):.2f} times the least"
        over = self.gap * self.least.weighted / self.of_rows
        best = "no box is better" if over <= 1 else f"at most {float(over):.2f} times the least of boxes"
        return f"{best}, as rows begin anywhere"


def solve(band: Band, threads: int, shape: Digits, free: bool) -> Solution:
    """The best digits for a block of `threads`, a power of two. `shape`: the mapping by shape, which wins ties.

    `free`: whether the block may have another number of threads.
    """
    if band.entered is not None and len(band.loops) == 1:
        return Solution(band, shape, None)  # a single loop has one mapping for this number of threads
    search = _Search(band, Warps(band), shape)
    search.meet(shape)
    search.boxes()
    if free:
        for digits in _narrow(band, threads):
            search.meet(digits)
    best, cost = search.best
    if band.entered is not None and band.guarded and cost.weighted * WORTH[1] >= search.shape_cost.weighted * WORTH[0]:
        best, cost = shape, search.shape_cost
    lanes = of_lanes(best, band.request.lanes)
    if (best is not shape or band.entered is not None) and prod(radix for _, radix in lanes) == band.request.lanes:
        made = _block(band, lanes, threads, shape)
        if best is not shape or of_warps(band, made) < of_warps(band, shape):
            best = made
    cost = replace(cost, arithmetic=of_warps(band, best))
    by_shape = replace(search.shape_cost, arithmetic=of_warps(band, shape))
    return Solution(band, best, Found(cost, by_shape, search.front(), search.is_cut, search.warps.work))


def _alone(band: Band, digits: Digits) -> Found:
    """The cost of the only possible digits."""
    warps = Warps(band)
    cost = replace(warps.cost(digits), arithmetic=of_warps(band, digits))
    return Found(cost, cost, ((digits, cost),), warps.work > WORK, warps.work)


class _Search(Mutable, dict=True):
    band: Band
    warps: Warps
    shape: Digits
    found: dict[Digits, Cost] = field(default_factory=dict[Digits, Cost])
    _best: tuple[tuple[Fraction, Fraction], Digits] | None = None

    @property
    def best(self) -> tuple[Digits, Cost]:
        """The digits of least cost, the first of equals."""
        assert self._best is not None
        return self._best[1], self.found[self._best[1]]

    @property
    def _least_found(self) -> tuple[Fraction, Fraction]:
        """The cost of the best digits: memory, and arithmetic."""
        assert self._best is not None
        return self._best[0]

    @cached_property
    def boxes_of_all(self) -> Fraction:
        """The number of warps for all iterations, if no lane idles."""
        return Fraction(prod(self.band.counted), self.band.request.lanes)

    @property
    def shape_cost(self) -> Cost:
        """The cost of the mapping by shape."""
        return self.found[self.shape]

    @property
    def is_cut(self) -> bool:
        """Whether the search reached its limit."""
        return self.warps.work > WORK

    def meet(self, digits: Digits) -> None:
        """Counts the cost of `digits`, with the arithmetic of a block of one warp where they are one."""
        if digits not in self.found and not self.is_cut:
            own = of_lanes(digits, self.band.request.lanes)
            cost = replace(self.warps.cost(digits), arithmetic=of_warps(self.band, own))
            self.found[digits] = cost
            if self._best is None or cost.order < self._best[0]:
                self._best = cost.order, digits

    def done(self) -> bool:
        """Whether the best found reaches the lower bound."""
        return self.is_cut or self._least_found <= (self._bound, self._none)

    @cached_property
    def _bound(self) -> Fraction:
        """The lower bound of the memory cost; none where boxes are so few that counting them is quicker."""
        boxes = comb(self.band.request.lanes.bit_length() + len(self.band.loops) - 2, len(self.band.loops) - 1)
        return Fraction(0) if boxes <= FEW else least(self.band).idling

    @cached_property
    def _none(self) -> Fraction:
        """The arithmetic of every mapping."""
        return least_of_warps(self.band, ())

    def boxes(self) -> None:
        """Every box of a warp's lanes that may improve on the best. A team has its threads: there a box is a whole warp."""
        loops = _order(self.band)
        room = [_room(self.band, loop) for loop in loops]
        total = min(self.band.request.lanes, prod(room))
        if self.band.entered is None or total == self.band.request.lanes:
            self._boxes(loops, room, 0, (), total)

    def _boxes(self, loops: tuple[int, ...], room: list[int], at: int, chosen: Digits, left: int) -> None:
        if self.done() or self._is_hopeless(chosen):
            return
        if left == 1:
            self.meet(chosen)
            return
        if at == len(loops) or prod(room[at:]) < left:
            return
        radix = min(left, room[at])
        while radix:
            part = ((loops[at], radix),) if radix > 1 else ()
            self._boxes(loops, room, at + 1, (*chosen, *part), left // radix)
            radix //= 2

    def _is_hopeless(self, lanes: Digits) -> bool:
        """Whether all boxes that contain `lanes` cost at least as much as the best."""
        box = box_of(lanes, len(self.band.loops))
        total = 0
        for stream in self.band.streams:
            each = WEIGHTS.request
            if stream.index is None and not stream.shared:
                steps = tuple((s, n) for s, n in zip(stream.steps, box, strict=True) if s and n > 1)
                each += _fewest(steps, stream.width, self.band.request)
            total += stream.trips * each
        memory, arithmetic = self._least_found
        least = total * self.boxes_of_all
        return least > memory or (least == memory and least_of_warps(self.band, lanes) >= arithmetic)

    def front(self) -> tuple[tuple[Digits, Cost], ...]:
        """The Pareto front, cheapest first."""
        costs = list(self.found.items())
        kept = [(d, c) for d, c in costs if not any(other.dominates(c) for _, other in costs)]
        seen: set[tuple[Fraction, ...]] = set()
        first: list[tuple[Digits, Cost]] = []
        for digits, cost in sorted(kept, key=lambda item: item[1].weighted):
            if cost.vector not in seen:
                seen.add(cost.vector)
                first.append((digits, cost))
        return tuple(first[:FRONT])


@lru_cache(REMEMBERED)
def _fewest(steps: tuple[tuple[int, int], ...], width: int, request: Coalescing) -> int:
    """The least weighted sectors and lines of a box, at any start."""
    offsets = sums(steps)
    sectors = min(touching(offsets, gcd(width, request.sector), request.sector))
    return WEIGHTS.sector * sectors + WEIGHTS.line * max(1, -(-sectors * request.sector // request.line))


def _room(band: Band, loop: int) -> int:
    """The most lanes along a loop, a power of two."""
    extent = band.extents[loop]
    return band.request.lanes if extent is None else min(band.request.lanes, _above(extent))


def _above(extent: int) -> int:
    """The least power of two that is at least `extent`."""
    return 1 << max(0, extent - 1).bit_length()


def _order(band: Band) -> tuple[int, ...]:
    """Loops sorted by the distance of neighbours in memory, least first; inner ones first among equals."""

    def closeness(loop: int) -> int:
        return sum(s.trips for s in band.streams if 0 < abs(s.steps[loop]) <= band.request.sector)

    return tuple(sorted(range(len(band.loops)), key=lambda n: (-closeness(n), -n)))


def _narrow(band: Band, threads: int) -> Iterator[Digits]:
    """Digits with the lengths of short rows, in every order, with blocks of about `threads`."""
    most = 4 * band.request.lanes
    small = [n for n, extent in enumerate(band.extents) if extent is not None and 1 < extent <= most]
    short = [n for n in small if (band.extents[n] or 0) & ((band.extents[n] or 0) - 1)]
    for count in range(1, NARROW + 1):
        for rows in permutations(small, count):
            if not any(n in short for n in rows) or not _is_close(band, rows[0]):
                continue
            radices = [band.extents[n] or 1 for n in rows]
            length = prod(radices)
            first = tuple(zip(rows, radices, strict=True))
            if length > 4 * threads:
                continue
            if length % band.request.lanes == 0 or len(rows) == len(band.loops):
                yield first
            for loop in (n for n in range(len(band.loops)) if n not in rows):
                for more in _lengths(length, threads, band.extents[loop], band.request.lanes):
                    yield (*first, (loop, more))


def _is_close(band: Band, loop: int) -> bool:
    """Whether neighbours along a loop lie in one sector of some stream."""
    return any(0 < abs(s.steps[loop]) < band.request.sector for s in band.streams)


def _lengths(length: int, threads: int, extent: int | None, lanes: int) -> Iterator[int]:
    """Radices by which blocks of whole warps, or nearly, cover rows of that length; none beyond the extent."""
    whole = lanes // gcd(length, lanes)
    most = 4 * threads // length
    found = (whole * max(1, threads // (length * whole)), threads // length, most)
    yield from dict.fromkeys(n for n in found if 1 < n <= most and (extent is None or n <= extent))


def _block(band: Band, lanes: Digits, threads: int, shape: Digits) -> Digits:
    """The remaining digits of a block, chosen for the least footprint; for a team, for the least arithmetic."""
    loops = len(band.loops)
    box = box_of(lanes, loops)
    room = [max(1, (threads if e is None else _above(e)) // n) for e, n in zip(band.extents, box, strict=True)]
    outer = sorted((n for n in range(loops) if box[n] == 1 and room[n] > 1), reverse=True)
    order = tuple(dict.fromkeys((*(loop for loop, _ in reversed(lanes)), *outer)))[:NEAR]
    best: tuple[Fraction | int, Fraction | int] | None = None
    made = joined((*lanes, (min(n for n, _ in shape), threads // band.request.lanes)))
    for parts in _parts(threads // band.request.lanes, [room[n] for n in order]):
        more = joined((*lanes, *((loop, radix) for loop, radix in zip(order, parts, strict=True) if radix > 1)))
        if band.entered is not None and (len(more) > len(shape) or compared(band, more) > compared(band, shape)):
            continue  # the analysis of barriers takes time for each digit
        cheap, near = of_warps(band, more), _footprint(band, more)
        key = (near, cheap) if band.entered is None else (cheap, near)
        if best is None or key < best:
            best, made = key, more
    return made


def _footprint(band: Band, digits: Digits) -> int:
    """The weighted footprint of a block."""
    box = box_of(digits, len(band.loops))
    total = 0
    for stream in band.streams:
        if stream.index is None and not stream.shared:
            found = touched(sums(tuple((s, n) for s, n in zip(stream.steps, box, strict=True) if n > 1)), 0, band.request)
            total += stream.trips * (WEIGHTS.sector * found[0] + WEIGHTS.line * found[1])
    return total


def _parts(left: int, room: list[int]) -> Iterator[tuple[int, ...]]:
    """Every factorisation of `left` into powers of two, each within its room, large first factors first."""
    if not room:
        if left == 1:
            yield ()
        return
    radix = min(left, room[0])
    while radix:
        for rest in _parts(left // radix, room[1:]):
            yield (radix, *rest)
        radix //= 2


def joined(digits: Digits) -> Digits:
    """Adjacent digits of one loop joined."""
    found: list[tuple[int, int]] = []
    for loop, radix in digits:
        if found and found[-1][0] == loop:
            found[-1] = (loop, found[-1][1] * radix)
        elif radix > 1:
            found.append((loop, radix))
    return tuple(found)
