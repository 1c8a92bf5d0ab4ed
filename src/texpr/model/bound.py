"""The bound of a launch: no run of it takes less than its busiest unit takes for what it is asked.

Each unit of a multiprocessor does so much in a clock (`isa.speed`), and the multiprocessor with most blocks sets the pace; what
all share, the second-level cache and memory, is asked by all together. A bound is no time: nothing is said of what waits.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.isa.speed import Device, Figure
from texpr.isa.target import Target
from texpr.model.machine import Residence, residence
from texpr.model.work import Shape, Work
from texpr.support.record import Record

MICRO = 1e6
"""Of a second; and of Hz, what clocks are told in."""

SYNC = " sync"


class Part(Record):
    """What one unit needs, in microseconds; None where its rate is not published, or what it is asked is not known."""

    unit: str
    us: float | None


class Bound(Record):
    """`us`: microseconds of the busiest unit, `deciding`. `parts`: of each unit that is asked anything, the busiest first.
    `unknown`: units of which nothing can be said."""

    us: float
    deciding: str
    parts: tuple[Part, ...]
    unknown: tuple[str, ...]
    residence: Residence

    def of(self, unit: str) -> float:
        """Microseconds of one unit; 0 where it is asked nothing, or nothing is known."""
        return next((part.us or 0.0 for part in self.parts if part.unit == unit), 0.0)


def bound(work: Work, shape: Shape, target: Target, device: Device) -> Bound:
    """The bound of a launch of this work in this shape."""
    held = residence(shape, target, device)
    parts = sorted(_parts(work, held, target, device), key=lambda part: -(part.us or 0.0))
    known = [part for part in parts if part.us is not None]
    unknown = tuple(part.unit for part in parts if part.us is None)
    if not known:
        return Bound(0.0, "", (), unknown, held)
    return Bound(known[0].us or 0.0, known[0].unit, tuple(known), unknown, held)


def _parts(work: Work, held: Residence, target: Target, device: Device) -> Iterator[Part]:
    clock = (device.clock.value or 0.0) * MICRO

    def each(amount: float, rate: Figure, hertz: float = clock) -> float | None:
        """Microseconds of an amount that is shared out over all multiprocessors."""
        if rate.value is None or not hertz:
            return None
        return amount * held.loss / ((device.multiprocessors.value or 1.0) * rate.value * hertz) * MICRO

    yield Part("issue", each(work.issued * target.warp, device.rates.issue))
    for unit, amount in _units(work):
        rate: Figure | None = getattr(device.rates, unit, None)
        if rate is not None and amount:
            yield Part(unit, each(amount * target.warp, rate))
    yield from _matrix(work, held, device)
    whole = Figure(1.0, "a round is what a clock gives")
    for name, rounds in (("l1", work.l1), ("shared", work.shared)):
        if rounds:
            yield Part(name, each(rounds, whole))
    if work.l2 is not None:
        rate, all_of_it = device.bandwidth.l2, work.l2
        yield Part("l2", None if rate.value is None else all_of_it / (rate.value * clock) * MICRO)
    if work.dram is not None:
        rate, moved = device.bandwidth.dram, work.dram + work.again * _forgotten(work, held, device)
        yield Part("dram", None if rate.value is None else moved / rate.value * MICRO)


def _forgotten(work: Work, held: Residence, device: Device) -> float:
    """The share of what is asked for again that no cache has any more: what all blocks at once ask for is larger."""
    cache, at_once = device.cache.value, work.own * held.blocks * (device.multiprocessors.value or 1.0)
    return max(0.0, 1.0 - cache / at_once) if cache is not None and at_once else 0.0


def _units(work: Work) -> Iterator[tuple[str, float]]:
    """Instructions of each unit; those that multiply integers run on half of the unit for f32, and keep it busy, too."""
    whole = work.units.get("fma", 0.0) + work.units.get("imad", 0.0)
    yield "fma", whole
    yield from ((unit, amount) for unit, amount in work.units.items() if unit != "fma")


def _matrix(work: Work, held: Residence, device: Device) -> Iterator[Part]:
    """The matrix unit, whose types come one after the other."""
    if work.products:
        alone = _multiplied(work, device, device.matrix.sync.value)
        yield Part("matrix", None if alone is None else alone * held.loss)


def peak(work: Work, device: Device) -> float | None:
    """Microseconds that the matrix units of a device need for these products at least, all of them all the time, by the
    instructions that are fastest; None where there are none, or a rate is not published."""
    return _multiplied(work, device, 1.0) if work.products else None


def _multiplied(work: Work, device: Device, sync: float | None) -> float | None:
    """Microseconds of all matrix units; `sync`: the share of their rate that instructions of a warp get."""
    total = 0.0
    for name, amount in work.products.items():
        rate, share = device.matrix.rate(name.removesuffix(SYNC)).value, sync if name.endswith(SYNC) else 1.0
        if rate is None or share is None or device.matrix.clock.value is None:
            return None
        hertz = device.matrix.clock.value * MICRO
        total += amount / ((device.multiprocessors.value or 1.0) * rate * share * hertz) * MICRO
    return total


class Least(Record):
    """What any program for the same function needs: `dram`: microseconds to bring inputs and take results away, each once;
    `unit`: for its operations, on the best unit that their types allow."""

    dram: float
    unit: float

    @property
    def us(self) -> float:
        """The greater."""
        return max(self.dram, self.unit)


def ratio(bound_us: float, least: Least) -> float | None:
    """How many times the least a bound is; None where nothing needs to be done."""
    return bound_us / least.us if least.us else None
