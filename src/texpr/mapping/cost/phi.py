"""The source's measure φ, Σ |f(t + 1) − f(t)| over neighbouring lanes of a warp, and the digits that minimise it.

A step from one lane to the next resets the lowest full digits to 0 and increments the next one: a *carry case*. Within a case
the difference of addresses is a constant, Δ_p = step · weight of digit p less the sum of the digits before it, and of the 2^n
− 1 steps of a warp 2^(n − 1 − p) are of case p. So φ is a sum over cases: exact, floors included.

φ rewards proximity, not few sectors, and is reported beside σ. It is minimised over binary digits by branch and bound: later
digits cannot lower the cost of the first ones. `phi_program` states the same as an integer program. Its certificate of a case
is that of Farkas' lemma: d − Δ and d + Δ as combinations, with non-negative multipliers, of constraints of the case's box; Δ
is constant within the box, so the constant d − |Δ| ≥ 0 is the whole certificate.
"""

from __future__ import annotations

from math import gcd

from texpr.mapping.cost.digits import Digits
from texpr.mapping.cost.streams import Band
from texpr.support.record import Mutable, Record, field

ORDERS = 50_000
"""The most prefixes of digits examined; after that the best so far is taken."""


class Phi(Record):
    """Binary digits of a warp's lanes, fastest first, as the loop of each; their φ; whether it is proved minimal."""

    loops: tuple[int, ...]
    value: int
    proved: bool

    @property
    def digits(self) -> Digits:
        """The same as digits of a mapping."""
        return tuple((loop, 2) for loop in self.loops)


def cases(band: Band, loops: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """For each stream the differences Δ_p of addresses, in elements, of each carry case."""
    found: list[tuple[int, ...]] = []
    for stream in band.streams:
        weights = [1] * len(band.loops)
        before = 0
        deltas: list[int] = []
        for loop in loops:
            step = stream.steps[loop] * weights[loop] // stream.width
            deltas.append(step - before)
            before += step
            weights[loop] *= 2
        found.append(tuple(deltas))
    return tuple(found)


def phi(band: Band, loops: tuple[int, ...]) -> int:
    """φ of a warp whose binary digits, fastest first, are those loops'."""
    return sum(
        trips * sum(abs(delta) << (len(loops) - 1 - p) for p, delta in enumerate(deltas))
        for trips, deltas in zip(trips_of(band), cases(band, loops), strict=True)
    )


def trips_of(band: Band) -> tuple[int, ...]:
    """The executions of each stream, divided by their greatest common divisor."""
    trips = [stream.trips for stream in band.streams]
    common = gcd(*trips) or 1
    return tuple(n // common for n in trips)


def least_phi(band: Band) -> Phi | None:
    """The digits that minimise φ; None where an access is not affine."""
    if any(stream.index is not None for stream in band.streams) or 0 in band.counted:
        return None
    room = rooms(band)
    search = _Search(band, room, min(band.request.lanes.bit_length() - 1, sum(room)), trips_of(band))
    search.visit((), [0] * len(band.streams), 0)
    assert search.best is not None
    return Phi(search.best[1], search.best[0], search.left >= 0)


def rooms(band: Band) -> tuple[int, ...]:
    """The most binary digits of each loop among the lanes."""
    most = band.request.lanes.bit_length() - 1
    return tuple(most if e is None else min(most, max(0, e - 1).bit_length()) for e in band.extents)


class _Search(Mutable):
    band: Band
    room: tuple[int, ...]
    lanes: int
    trips: tuple[int, ...]
    left: int = ORDERS
    best: tuple[int, tuple[int, ...]] | None = None
    used: list[int] = field(default_factory=list[int])

    def visit(self, loops: tuple[int, ...], before: list[int], value: int) -> None:
        """Branches over orders that start with `loops`, whose digits contribute at most `before`, at the cost `value`."""
        self.left -= 1
        if self.left < 0 and self.best is not None:
            return
        if self.best is not None and value >= self.best[0]:
            return
        if len(loops) == self.lanes:
            self.best = value, loops
            return
        often = 1 << (self.lanes - 1 - len(loops))
        options: list[tuple[int, int, list[int]]] = []
        for loop in range(len(self.room)):
            taken = loops.count(loop)
            if taken == self.room[loop]:
                continue
            steps = [(stream.steps[loop] << taken) // stream.width for stream in self.band.streams]
            cost = sum(n * often * abs(s - b) for n, s, b in zip(self.trips, steps, before, strict=True))
            options.append((cost, loop, [b + s for b, s in zip(before, steps, strict=True)]))
        for cost, loop, after in sorted(options, key=lambda option: option[:2]):
            self.visit((*loops, loop), after, value + cost)
