"""Choice of tile sizes: the least modelled cost within the budgets of a target, by bounded descent.

The cost of a tile for each iteration of the nest is measured in bytes of the L2 cache: boxes copied from global memory,
direct accesses, the threads' reads of shared memory for their own part of the tile, and the barriers around it; multiplied
for the surplus iterations of partial tiles, where sizes are known, and for idle multiprocessors. The result is deterministic:
no clock, no randomness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import ceil, inf, prod
from typing import Any

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.planner.budget import MULTIPROCESSORS, SHARED_COST, Budget
from texpr.planner.model import Form, accesses, form, warp_bytes
from texpr.planner.nest import Nest, NoPlan
from texpr.support.record import Mutable, Record, field

WIDEST = 128
"""The most iterations of one loop in a tile."""

OWN = (1, 2, 4, 8)
MOST_OWN = 64
"""The most iterations of a loop, and of all loops together, that one thread runs (coarsening): each takes a register or more.
"""

MOST_TILED, MOST_SPLIT = 4, 3
"""The most loops of each kind that are split: the search stays small for deep nests."""

WHOLE = 8
"""A `seq` with at most this trip count is not split."""

SYNC = 2048
"""The cost of two barriers for a block, in bytes: about forty clocks of 128 bytes, half of which other blocks use."""

LEAST_REUSE = 1.5
"""The least reuse, and the least ratio of the traffic without the tile to that with it, for which a nest is tiled."""

LEAST_THREADS, LANES = 64, 16

MOST_STEPS = 64

GAIN = 0.98
"""A step of the descent is taken if it reduces the cost at least by this factor: small gains do not justify larger tiles."""


class Staging(Record):
    """The box of `form` is copied to shared memory in each iteration of the outer loop `at`; None: of the innermost grid
    loop."""

    form: Form
    at: Sym | None
    box: tuple[int, ...]
    times: int

    @property
    def bytes(self) -> int:
        """The shared memory of the box, without padding."""
        return -(-prod(self.box) * self.form.buffer.dtype.bytes // 16) * 16


class Candidate(Record):
    """`tile`: iterations of each loop in a block's tile. `own`: those of one thread. `lane`: the loop along which
    neighbouring threads lie. `moved`, `direct`: bytes of global memory, by boxes and otherwise; `untiled`: without boxes.
    `reuse`: accesses per staged element. `cost`: as above, for one iteration."""

    tile: Mapping[Sym, int]
    own: Mapping[Sym, int]
    lane: Sym
    staged: tuple[Staging, ...]
    moved: float
    direct: float
    untiled: float
    reuse: float
    shared: int
    registers: int
    cost: float

    def data(self) -> dict[str, Any]:
        """For `explain`."""
        return {
            "tile": named(self.tile),
            "own": named(self.own),
            "staged": [
                {"buffer": s.form.buffer.name, "box": list(s.box), "bytes": s.bytes, "times": s.times} for s in self.staged
            ],
            "bytes_moved": self.moved + self.direct,
            "reuse": self.reuse,
            "shared_bytes": self.shared,
            "registers": self.registers,
        }


def named(sizes: Mapping[Sym, int]) -> dict[str, int]:
    """Iterations by the name of their loop."""
    return {str(sym): size for sym, size in sizes.items()}


class Search(Mutable, eq=False, dict=True):
    """`nest` under `budget`; buffers in `banned` are not staged. `in_order`: sequential loops may not be interchanged, so
    only the innermost of them is split, and those around it stay outside of the tile."""

    nest: Nest
    budget: Budget
    banned: frozenset[Buffer] = frozenset()
    in_order: bool = False
    forms: dict[Buffer, Form] = field(init=False)
    lane: Sym = field(init=False)
    tiled: tuple[Sym, ...] = field(init=False)
    _found: dict[tuple[int, ...], Candidate | None] = field(default_factory=dict[tuple[int, ...], "Candidate | None"])
    _direct: dict[tuple[Buffer, int], float] = field(default_factory=dict[tuple[Buffer, int], float])
    _kept: dict[int, float] = field(default_factory=dict[int, float])

    def __post_init__(self) -> None:
        self.moved = tuple(dict.fromkeys(t.buffer for t in self.nest.touches if t.buffer not in self.nest.local))
        self.written = tuple(dict.fromkeys(t.buffer for t in self.nest.touches if t.writes))
        found = {b: form(self.nest.of(b)) for b in self.nest.read_only() if b not in self.banned}
        self.forms = {b: f for b, f in found.items() if f is not None}
        self.lane = self._lane()
        self.tiled = self._most_reused()
        self.own = tuple(sorted(self._owns(), key=lambda each: (each[0], each[2][self.lane])))

    def _most_reused(self) -> tuple[Sym, ...]:
        """The lane, and the loops with reuse in the most buffers, inner ones first."""
        reused = [p.sym for p in reversed(self.nest.pars) if p.sym != self.lane and self._has_reuse(p.sym)]
        reused.sort(key=lambda sym: -sum(sym not in f.along for f in self.forms.values()))
        kept = {self.lane, *reused[: MOST_TILED - 1]}
        return tuple(p.sym for p in self.nest.pars if p.sym in kept)

    def _has_reuse(self, sym: Sym) -> bool:
        """Whether neighbouring iterations of `sym` share elements of some buffer."""
        for found in self.forms.values():
            if sym not in found.along:
                return True
            for steps, wide in zip(found.dims, found.spread, strict=True):
                if any(s == sym for s, _ in steps) and (len(steps) > 1 or wide):
                    return True
        return False

    def _lane(self) -> Sym:
        """The `par` along which most accesses are contiguous, what is written counted twice; the innermost of equals."""
        votes = {p.sym: 0 for p in self.nest.pars}
        for touch in self.nest.touches:
            if touch.index and touch.buffer not in self.nest.local:
                for sym, step in touch.index[-1].steps.items():
                    elsewhere = any(part.varies(sym) for part in touch.index[:-1])
                    if sym in votes and abs(step) == 1 and not elsewhere:
                        votes[sym] += 1 + touch.writes
        return max(reversed(votes), key=lambda sym: votes[sym])

    def _owns(self) -> Iterator[tuple[float, int, Mapping[Sym, int]]]:
        """The candidates for a thread's part of a tile, with the words of shared memory read for each of its iterations, and
        registers."""
        for values in product(OWN, repeat=len(self.tiled)):
            if prod(values) <= MOST_OWN and sum(v > 1 for v in values) <= 3:
                own: Mapping[Sym, int] = dict(zip(self.tiled, values, strict=True))
                kept, read = self._fragments(own)
                registers = prod(values) * self._accumulators() + kept
                if registers <= self.budget.registers:
                    yield read / prod(values), registers, own

    def _accumulators(self) -> int:
        """The words that each iteration of a thread keeps over the sequential loops."""
        seqs = {loop.sym for loop in self.nest.seqs}
        every = {t.buffer for t in self.nest.touches if t.writes and t.around & seqs}
        return sum(max(1, b.dtype.bytes // 4) for b in every) or 1

    def _fragments(self, own: Mapping[Sym, int]) -> tuple[int, int]:
        """The registers for the operands of a thread, and the number of reads for them."""
        kept, read = 0, 0
        for buffer in self.forms:
            for touch in self.nest.of(buffer):
                size = prod(v for s, v in own.items() if touch.along(s))
                read += size
                kept = kept + max(1, size * buffer.dtype.bytes // 4)
        return kept, read

    def best(self) -> Candidate:
        """The cheapest candidate. Raises NoPlan where none is worth it."""
        if not self.forms:
            raise NoPlan("nothing that it reads over and over could be kept in a tile")
        if not self.tiled or not any(self._has_reuse(sym) for sym in self.tiled):
            raise NoPlan("no element is read by two iterations of its `par`s")
        found = self._descend()
        if found is None:
            raise NoPlan("no tile of it fits the target")
        if found.reuse < LEAST_REUSE:
            raise NoPlan(f"an element is read {found.reuse:.2g} times, too seldom for a tile to pay")
        if found.untiled < LEAST_REUSE * (found.moved + found.direct):
            less = found.untiled / (found.moved + found.direct)
            raise NoPlan(f"a tile would move {less:.2g} times less, too little to pay")
        return found

    def others(self) -> list[Candidate]:
        """The tiles that a descent looks at, the cheapest first."""
        self._descend()
        return sorted((each for each in self._found.values() if each is not None), key=lambda each: each.cost)

    def _descend(self) -> Candidate | None:
        """Steepest descent from the first feasible start to a local minimum."""
        start = next((place for place in self._starts() if self.at(place) is not None), None)
        if start is None:
            return None
        at, best = start, self.at(start)
        for _ in range(MOST_STEPS):
            tried = [(c.cost, place, c) for place in self.near(at) if (c := self.at(place)) is not None]
            if best is None or not tried:
                break
            cost, place, candidate = min(tried, key=lambda each: each[:2])
            if cost > best.cost * GAIN:
                break
            at, best = place, candidate
        return best

    @property
    def moving(self) -> tuple[Sym, ...]:
        """The loops whose tile size is chosen."""
        return (*self.tiled, *self._cut)

    @property
    def _cut(self) -> list[Sym]:
        """The sequential loops whose tile size is chosen."""
        found = [s.sym for s in self.nest.seqs if self._is_split(s)]
        return found[-1:] if self.in_order else found[-MOST_SPLIT:]

    def _is_split(self, loop: ir.Loop) -> bool:
        return not loop.extent.is_constant or loop.extent.constant > WHOLE

    def _is_outside(self, loop: ir.Loop) -> bool:
        """Whether `loop` is outside of the tile, if it is not split."""
        if isinstance(loop, ir.Par) or self._is_split(loop):
            return True
        names = [s.sym for s in self.nest.seqs]
        return self.in_order and any(names.index(loop.sym) < names.index(cut) for cut in self._cut)

    def _starts(self) -> Iterator[tuple[int, ...]]:
        """Feasible starts: enough threads, first with many iterations of the sequential loops, then with few, then with more
        threads along the lane."""
        even = 1 << -(-8 // len(self.tiled))
        for pars in (
            {},
            {s: self.budget.warp if s == self.lane else 4 for s in self.tiled},
            {s: 2 * self.budget.warp if s == self.lane else 1 for s in self.tiled},
        ):
            for seq in (16, 4, 1):
                sizes = (pars.get(sym, max(even, 16)) if sym in self.tiled else seq for sym in self.moving)
                yield tuple(min(size, self._widest(sym)) for size, sym in zip(sizes, self.moving, strict=True))

    def _widest(self, sym: Sym) -> int:
        return min(WIDEST, 1 << (self.nest.trips[sym] - 1).bit_length())

    def near(self, at: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """`at` and its neighbours, one or two steps of a factor of two away."""
        steps = [()] + [((n, f),) for n in range(len(at)) for f in (0.5, 2.0)]
        steps += [((n, 2.0), (m, f)) for n in range(len(at)) for m in range(len(at)) if n != m for f in (0.5, 2.0)]
        for changes in steps:
            made = list(at)
            for n, factor in changes:
                made[n] = int(made[n] * factor)
            if all(1 <= size <= self._widest(sym) for size, sym in zip(made, self.moving, strict=True)):
                yield tuple(made)

    @property
    def looked_at(self) -> int:
        """The number of tiles whose cost was computed."""
        return len(self._found)

    def at(self, place: tuple[int, ...]) -> Candidate | None:
        if place not in self._found:
            self._found[place] = self._candidate(dict(zip(self.moving, place, strict=True)))
        return self._found[place]

    def _candidate(self, moving: Mapping[Sym, int]) -> Candidate | None:
        nest = self.nest
        tile = {loop.sym: moving.get(loop.sym, 1 if self._is_outside(loop) else nest.trips[loop.sym]) for loop in nest.loops}
        chosen = self._thread(tile)
        if chosen is None:
            return None
        read, registers, own = chosen
        width = tile[self.lane] // own[self.lane]
        counts = {sym: ceil(nest.trips[sym] / size) for sym, size in tile.items()}
        staged: list[Staging] = []
        moved = direct = untiled = 0.0
        brought = used = 0
        for buffer in self.moved:
            straight = self._straight(buffer, width)
            untiled += straight
            staging = self._staging(buffer, tile, counts)
            box = inf if staging is None else staging.form.bytes_moved(tile, self.budget.sector) * staging.times
            if staging is None or box >= 0.75 * straight:
                direct += straight
                continue
            staged.append(staging)
            moved += box
            brought += prod(staging.box)
            used += accesses(nest, buffer, tile)
        shared = sum(s.bytes for s in staged)
        if not staged or shared > self.budget.shared:
            return None
        steps = prod(counts.values())
        local = (4 * read * nest.points + 2 * moved) * SHARED_COST + steps * SYNC
        blocks = prod(counts[p.sym] for p in nest.pars)
        idle = max(1.0, MULTIPROCESSORS / blocks)
        holes = prod(counts[s] * tile[s] / nest.trips[s] for s in tile)
        cost = (moved + direct + local) / nest.points * idle * holes
        return Candidate(tile, own, self.lane, tuple(staged), moved, direct, untiled, used / brought, shared, registers, cost)

    def _thread(self, tile: Mapping[Sym, int]) -> tuple[float, int, Mapping[Sym, int]] | None:
        """The cheapest part of the tile for a thread for which the number of threads is within limits."""
        best, least = None, inf
        sizes, lane = [tile[s] for s in self.tiled], self.tiled.index(self.lane)
        fewest, most = min(LANES, self._widest(self.lane)), self.budget.threads
        for read, registers, own in self.own:
            if 4 * read * SHARED_COST >= least:
                break
            threads = [size // v for size, v in zip(sizes, own.values(), strict=True)]
            if threads[lane] < fewest or not LEAST_THREADS <= prod(threads) <= most:
                continue
            if any([size % v for size, v in zip(sizes, own.values(), strict=True)]):
                continue
            cost = 4 * read * SHARED_COST + self._written(threads[lane]) / self.nest.points
            if cost < least and sum([t > 1 for t in threads]) <= 3:
                best, least = (read, registers, own), cost
        return best

    def _written(self, width: int) -> float:
        """The bytes written to global memory without a tile, where `width` threads lie along the lane."""
        if width not in self._kept:
            self._kept[width] = sum(self._straight(buffer, width) for buffer in self.written)
        return self._kept[width]

    def _staging(self, buffer: Buffer, tile: Mapping[Sym, int], counts: Mapping[Sym, int]) -> Staging | None:
        found = self.forms.get(buffer)
        if found is None or any(tile[sym] > 1 for sym in found.bent):
            return None
        outer = [loop.sym for loop in self.nest.seqs if counts[loop.sym] > 1]
        last = max((n for n, sym in enumerate(outer) if sym in found.along), default=-1)
        times = prod(counts[p.sym] for p in self.nest.pars) * prod(counts[s] for s in outer[: last + 1])
        return Staging(found, outer[last] if last >= 0 else None, found.box(tile), times)

    def _straight(self, buffer: Buffer, width: int) -> float:
        """The bytes of direct accesses to `buffer`. What is written is kept by a thread over sequential loops."""
        if buffer in self.nest.local:
            return 0.0
        known = self._direct.get((buffer, width))
        if known is not None:
            return known
        others = [s for s in reversed(self.tiled) if s != self.lane]
        lanes = [{self.lane: t % width, **({others[0]: t // width} if others else {})} for t in range(self.budget.warp)]
        total = 0.0
        seqs = {loop.sym for loop in self.nest.seqs}
        seen: set[tuple[bool, bool, int]] = set()
        for touch in self.nest.of(buffer):
            around = [s for s in touch.around if s not in seqs or touch.along(s)]
            key = (touch.reads and not touch.writes, touch.writes, len(around))
            if touch.writes and key in seen:
                continue
            seen.add(key)
            total += warp_bytes(touch, lanes, self.budget.sector) / self.budget.warp * prod(self.nest.trips[s] for s in around)
        self._direct[buffer, width] = total
        return total
