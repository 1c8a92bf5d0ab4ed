"""A lower bound on the cost of every mapping of a band, for any bijection of iterations to lanes.

A warp runs n ≤ 32 iterations. If at most m_a of all iterations access one and the same sector of stream a, the warp accesses
k_a sectors with k_a · m_a ≥ n. If at most μ_ab of them access one sector of a and one of b, then k_a · k_b · μ_ab ≥ n, since
each iteration of the warp lies in one of the k_a · k_b pairs. The same holds for lines, and for a sector of one stream with a
line of another. The least Σ weight · k over all integers that satisfy these inequalities, c(n), is found by branch and bound.
A band of N iterations then costs at least Σ c(n_w) over its warps. With the minimal number of warps, at most 31 lanes are
idle in all, and the least such sum bounds every mapping with no more idle lanes. For arbitrary mappings the bound is N · min
c(n) / n.

m and μ are counted from the differences of iterations whose addresses lie within a window of so many bytes: wherever the
window starts, all iterations in it differ by such differences from any one of them. The start is known if every loop that
moves an access within a window is short and no other loop does; then only iterations that truly share the window are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod

from texpr.isa.levels import WARP
from texpr.isa.requests import REMEMBERED
from texpr.mapping.cost.streams import Band, Stream
from texpr.mapping.cost.weights import WEIGHTS
from texpr.support.record import Mutable, Record

DIFFERENCES = 12_000
"""The most differences examined for a pair of windows before its bound is given up."""

SMALL = 16
"""For loops up to this extent, the positions of the first iteration are distinguished."""

LOOKED_AT = 12_000
"""The most pairs of position and difference examined for a pair of windows."""

MANY = WARP
"""Counts are clipped to this: no warp has more lanes."""

BRANCHES = 20000
"""The most values tried for the inequalities before the current bound is taken."""


class Window(Record):
    """A window of so many bytes of one stream: a sector or a line of it.

    `start`: the offset of the band's first iteration in a window, if it is the same for all iterations of the loops around
    and inside.
    """

    steps: tuple[int, ...]
    width: int
    size: int
    start: int | None = None

    @property
    def reach(self) -> int:
        """The greatest distance of two elements in it."""
        return self.size - self.width

    @property
    def moved_by(self) -> frozenset[int]:
        """The loops whose iterations have different offsets in a window."""
        return frozenset(n for n, step in enumerate(self.steps) if step % self.size)


class Least(Record):
    """Lower bounds of a band's cost: `sectors` alone, and `weighted` as `Cost.weighted`, without bank conflicts.

    They hold for mappings with a minimal number of idle lanes; `idling`, below `weighted`, holds for every mapping. `proved`:
    False where some stream is not affine, so that nothing is known of it. `whole`: no work limit was reached, which would
    weaken the bounds.
    """

    sectors: Fraction
    weighted: Fraction
    idling: Fraction
    proved: bool
    whole: bool = True


def least(band: Band) -> Least:
    """The lower bounds for `band`."""
    if band.refined is not None:
        return least(band.refined)
    iterations = prod(band.counted)
    if iterations == 0:
        return Least(Fraction(0), Fraction(0), Fraction(0), True)
    groups: dict[tuple[tuple[int, ...], int], list[Stream]] = {}
    for stream in band.streams:
        if not stream.shared and stream.index is None:
            groups.setdefault((stream.steps, stream.width), []).append(stream)
    requests = WEIGHTS.request * sum(stream.trips for stream in band.streams)
    sizes = (band.request.sector, band.request.line)
    windows = [Window(*key, size, _start(streams, size)) for size in sizes for key, streams in groups.items()]
    table, counted = shared_by(windows, band.spans)
    times = tuple(sum(s.trips for s in streams) for streams in groups.values())
    most = min(iterations, band.request.lanes)
    sectors, solved = _by_lanes((*times, *(0 for _ in times)), table, most)
    weighted = [w * n for w in WEIGHTS[:2] for n in times]
    parts, also = _by_lanes(weighted, table, most)
    every = tuple(requests + part for part in parts)
    idling = iterations * min(Fraction(part, n) for n, part in enumerate(every, 1))
    known = all(s.index is None or (s.shared and band.is_small(s)) for s in band.streams)
    by_sectors, by_weight = (Fraction(_of_warps(each, iterations)) for each in (sectors, every))
    return Least(by_sectors, by_weight, idling, known, counted and solved and also)


def _start(streams: Sequence[Stream], size: int) -> int | None:
    """The common offset of all of `streams` in a window of `size` bytes, if loops outside of the band do not change it."""
    starts = {s.first % size for s in streams}
    moved = any(step % size for s in streams for step, _ in s.outer)
    return None if moved or len(starts) > 1 else starts.pop()


def _by_lanes(weights: Sequence[int], table: Table, most: int) -> tuple[tuple[int, ...], bool]:
    """c(1), c(2), …: the least cost of a warp with so many lanes; and whether no limit was reached."""
    found = [cheapest(weights, table, n) for n in range(1, most + 1)]
    return tuple(cost for cost, _ in found), all(whole for _, whole in found)


def _of_warps(by_lanes: tuple[int, ...], iterations: int) -> int:
    """The least Σ c(n) over the minimal number of warps: idle lanes are placed where they save most."""
    lanes_of_all = len(by_lanes)
    warps = -(-iterations // lanes_of_all)
    idle = warps * lanes_of_all - iterations
    saved = [0] * (idle + 1)
    for lanes in range(1, idle + 1):
        saved[lanes] = max(by_lanes[-1] - by_lanes[-1 - n] + saved[lanes - n] for n in range(1, lanes + 1))
    return warps * by_lanes[-1] - saved[idle]


Table = tuple[tuple[int, ...], ...]


def shared_by(windows: Sequence[Window], spans: tuple[int, ...]) -> tuple[Table, bool]:
    """μ for each pair of windows, and m on the diagonal, at most `MANY`, which bounds nothing; and whether no limit was
    reached."""
    found = [[together(min(a, b, key=_key), max(a, b, key=_key), spans) for b in windows] for a in windows]
    alone = [found[n][n][0] for n in range(len(windows))]
    table = tuple(tuple(min(alone[i], alone[j], each[0]) for j, each in enumerate(row)) for i, row in enumerate(found))
    return table, all(whole for row in found for _, whole in row)


def _key(window: Window) -> tuple[tuple[int, ...], int, int, int]:
    return window.steps, window.width, window.size, -1 if window.start is None else window.start


@lru_cache(REMEMBERED)
def together(one: Window, other: Window, spans: tuple[int, ...]) -> tuple[int, bool]:
    """An upper bound of the iterations in one window of `one` and one of `other`; `MANY` is that many or more.

    And whether it was counted; it is `MANY` where a work limit was reached.
    """
    free = prod((n for n, a, b in zip(spans, one.steps, other.steps, strict=True) if not a and not b), start=1)
    if free >= MANY or any(_run(a, b, n, one, other) >= MANY for a, b, n in zip(one.steps, other.steps, spans, strict=True)):
        return MANY, True
    loops = [n for n, (a, b) in enumerate(zip(one.steps, other.steps, strict=True)) if a or b]
    loops.sort(key=lambda n: -max(abs(one.steps[n]) * other.size, abs(other.steps[n]) * one.size))
    found = _differences(one, other, tuple(loops), spans)
    if found is None:
        return MANY, False
    placed = frozenset(n for w in (one, other) if w.start is not None for n in w.moved_by)
    told = [n for n in loops if n in placed or any(point[n] for point, _, _ in found)]
    small = _small(told, spans, one.moved_by | other.moved_by, LOOKED_AT // len(found))
    most = 0
    kept = [(place, list(_within(found, place, spans))) for place in _places(small, spans)]
    same = max(sum(1 for _, a, b in each if a == 0 and b == 0) for _, each in kept)
    for place, inside in kept:
        each = list(_in_window(_in_window(inside, one, place, 1), other, place, 2))
        counts = Counter((a, b) for _, a, b in each)
        most = max(most, _fullest({at: min(same, n) for at, n in counts.items()}, one.reach, other.reach))
        if most * free >= MANY:
            return MANY, True
    return min(MANY, most * free), True


def _run(step: int, step2: int, span: int, one: Window, other: Window) -> int:
    """The number of iterations along one loop that lie in both windows."""
    if not step and not step2:
        return span
    ends = (w.reach // abs(s) for w, s in ((one, step), (other, step2)) if s)
    return min(span, 1 + min(ends))


_Difference = tuple[dict[int, int], int, int]


def _differences(one: Window, other: Window, loops: tuple[int, ...], spans: tuple[int, ...]) -> list[_Difference] | None:
    """Each difference of two iterations with its differences of addresses, where both are in reach; None where there are too
    many."""
    found: list[_Difference] = []
    rests = [
        tuple(sum(abs(w.steps[n]) * (spans[n] - 1) for n in loops[at:]) for w in (one, other)) for at in range(len(loops) + 1)
    ]
    left = DIFFERENCES
    stack: list[tuple[int, dict[int, int], int, int]] = [(0, {}, 0, 0)]
    while stack:
        at, point, a, b = stack.pop()
        left -= 1
        if left < 0:
            return None
        if at == len(loops):
            found.append((point, a, b))
            continue
        loop = loops[at]
        lo, hi = 1 - spans[loop], spans[loop] - 1
        for window, value, rest in ((one, a, rests[at + 1][0]), (other, b, rests[at + 1][1])):
            step, far = window.steps[loop], window.reach + rest
            if step:
                near, end = (-far - value, far - value) if step > 0 else (far - value, -far - value)
                lo, hi = max(lo, -(-near // step)), min(hi, end // step)
        if hi - lo > left:
            return None
        step, step2 = one.steps[loop], other.steps[loop]
        stack.extend((at + 1, {**point, loop: n}, a + n * step, b + n * step2) for n in range(lo, hi + 1))
    return found


def _small(loops: Sequence[int], spans: tuple[int, ...], first: frozenset[int], most: int) -> tuple[int, ...]:
    """The loops whose positions are distinguished, at most `most` in all: those of `first` by preference."""
    chosen: list[int] = []
    total = 1
    for loop in sorted(loops, key=lambda n: (n not in first, spans[n])):
        if spans[loop] <= SMALL and total * spans[loop] <= most:
            total *= spans[loop]
            chosen.append(loop)
    return tuple(chosen)


def _places(small: tuple[int, ...], spans: tuple[int, ...]) -> Iterator[dict[int, int]]:
    for place in product(*(range(spans[loop]) for loop in small)):
        yield dict(zip(small, place, strict=True))


def _within(found: list[_Difference], place: dict[int, int], spans: tuple[int, ...]) -> Iterator[_Difference]:
    """The differences that lead from `place` to an existing iteration."""
    for each in found:
        if all(0 <= at + each[0][loop] < spans[loop] for loop, at in place.items()):
            yield each


def _in_window(found: Iterable[_Difference], window: Window, place: dict[int, int], which: int) -> Iterator[_Difference]:
    """The differences from `place` that stay in its window of the stream, if the window's start is known."""
    if window.start is None or not window.moved_by <= place.keys():
        yield from found
        return
    at = (window.start + sum(window.steps[loop] * n for loop, n in place.items())) % window.size
    for each in found:
        if 0 <= at + (each[1] if which == 1 else each[2]) < window.size:
            yield each


def _fullest(counts: dict[tuple[int, int], int], reach: int, reach2: int) -> int:
    """The maximum count in any pair of windows that contains (0, 0), by prefix sums over a grid of the addresses."""
    if all(a == b for a, b in counts):
        return _fullest_run({a: n for (a, _), n in counts.items()}, min(reach, reach2))
    rows, columns = sorted({a for a, _ in counts}), sorted({b for _, b in counts})
    row, column = {a: n for n, a in enumerate(rows)}, {b: n for n, b in enumerate(columns)}
    sums = [[0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    cells = [[0] * len(columns) for _ in rows]
    for (a, b), count in counts.items():
        cells[row[a]][column[b]] = count
    for i, line in enumerate(cells):
        running = 0
        for j, count in enumerate(line):
            running += count
            sums[i + 1][j + 1] = sums[i][j + 1] + running
    tops = [(i, _after(rows, a + reach)) for i, a in enumerate(rows) if -reach <= a <= 0]
    lefts = [(j, _after(columns, b + reach2)) for j, b in enumerate(columns) if -reach2 <= b <= 0]
    return max(sums[k][m] - sums[i][m] - sums[k][j] + sums[i][j] for i, k in tops for j, m in lefts)


def _fullest_run(counts: dict[int, int], reach: int) -> int:
    """The same where both addresses are equal."""
    places = sorted(at for at in counts if -reach <= at <= reach)
    most = total = first = 0
    for at in places:
        total += counts[at]
        while at - places[first] > reach:
            total -= counts[places[first]]
            first += 1
        if places[first] <= 0 <= places[first] + reach:
            most = max(most, total)
    return most


def _after(values: list[int], end: int) -> int:
    return sum(1 for value in values if value <= end)


def cheapest(weights: Sequence[int], table: Table, lanes: int) -> tuple[int, bool]:
    """The least Σ weight · k with k_i · table[i][i] ≥ lanes and k_i · k_j · table[i][j] ≥ lanes, and True; or, if a work
    limit was reached, a lower bound of it, and False."""
    order = sorted((n for n, w in enumerate(weights) if w), key=lambda n: -weights[n])
    search = _Inequalities([weights[n] for n in order], [[table[i][j] for j in order] for i in order], lanes)
    search.visit(0, [])
    return (search.best, True) if search.best is not None and search.left >= 0 else (search.alone, False)


class _Inequalities(Mutable):
    weights: list[int]
    table: list[list[int]]
    lanes: int
    best: int | None = None
    left: int = BRANCHES

    @property
    def alone(self) -> int:
        """The sum of each stream's own least cost: always a lower bound."""
        return sum(w * -(-self.lanes // self.table[n][n]) for n, w in enumerate(self.weights))

    def visit(self, at: int, chosen: list[int]) -> None:
        """Branches over the variables from `at` on."""
        self.left -= 1
        if self.left < 0:
            return
        needed = [self._needed(n, chosen) for n in range(at, len(self.weights))]
        total = sum(w * k for w, k in zip(self.weights, (*chosen, *needed), strict=True))
        if self.best is not None and total >= self.best:
            return
        if at == len(self.weights):
            self.best = total
            return
        rest = total - self.weights[at] * needed[0]
        for value in range(needed[0], MANY + 1):
            if self.best is not None and rest + self.weights[at] * value >= self.best:
                break
            self.visit(at + 1, [*chosen, value])

    def _needed(self, at: int, chosen: list[int]) -> int:
        """The least value of `at` that the chosen variables permit."""
        own = -(-self.lanes // self.table[at][at])
        return max((own, *(-(-self.lanes // (k * self.table[at][n])) for n, k in enumerate(chosen))))
