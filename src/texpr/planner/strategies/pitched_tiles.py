"""Products by threads whose operands have rows that begin anywhere: whole copies first, as for tensor cores (`pitched`).

Such operands come to shared memory, and from there to registers, an element at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from texpr.ir.value import Buffer
from texpr.isa.registry import DEVICES
from texpr.isa.speed import Device
from texpr.planner.copies import COPIED
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest
from texpr.planner.strategies import tiles
from texpr.planner.strategies.pitched import SAID, Pitched, arrays_of, copying, is_even
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject

SINGLE = 2.0
"""How much longer such products take at least, of how they would be with whole rows: it was 3.1 times, for f32
4097 × 4095 × 4099 on an H200 (`bench/results/times.json`)."""


def _arrays(subject: Subject) -> tuple[Buffer, ...]:
    """Arrays whose rows are no whole chunks, each of which is read again for other iterations of some loop."""
    nest = subject.nest
    assert isinstance(nest, Nest), "as it applies"
    used = {b for b in nest.read_only() if any(not t.along(loop.sym) for t in nest.of(b) for loop in nest.pars)}
    return tuple(b for b in arrays_of(subject) if b.dtype.bytes >= COPIED[-1] and b in used and not is_even(b))


def _applies(subject: Subject) -> bool:
    nest = subject.nest
    if not isinstance(nest, Nest) or subject.is_part or not nest.seqs or not subject.state.target.has_warps:
        return False
    fixed = all(loop.extent.is_constant for loop in nest.loops)  # else nobody knows what is used often
    return fixed and tiles.STRATEGY.applies(subject) and bool(_arrays(subject))


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    nest, device = subject.nest, DEVICES.get(subject.state.target.name)
    assert isinstance(nest, Nest), "as it applies"
    if refused or device is None or not device.bandwidth.dram.value or not device.clock.value:
        return None
    arrays, time = _arrays(subject), _multiplied(nest, device)
    if time + sum(copying(array, device) for array in arrays) > SINGLE * time:
        return None
    before = tiles.STRATEGY.propose(subject, ())
    if before is None:
        return None
    return Proposal(Pitched(subject.state, subject.span, arrays=arrays, subject=subject), 0.99 * before.cost, said=SAID)


def _multiplied(nest: Nest, device: Device) -> float:
    """Microseconds that threads multiply and add for, at least."""
    lanes = (device.rates.fma.value or 1.0) * (device.multiprocessors.value or 1.0)
    return prod(nest.trips.values()) / (lanes * (device.clock.value or 1.0))


STRATEGY = Strategy(Rank.TILE, _applies, _propose)
"""Where rows begin anywhere."""
