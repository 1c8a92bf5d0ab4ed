"""Products whose operands have rows that begin anywhere: whole copies first, whose rows begin at multiples of 16 bytes.

    par M |i| { par N |j| { … A[i, k] * B[k, j] … } }       stage(A, in=global)  stage(B, in=global)  and then as ever

The engine copies no rows that begin elsewhere, and threads bring elements of two bytes one at a time, through registers. A copy
moves what it reads twice, and a launch takes its time, so it pays where elements are used often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import Expr
from texpr.ir.value import Buffer
from texpr.ir.value.types import F8E8M0
from texpr.isa.engine import CHUNK
from texpr.isa.registry import DEVICES
from texpr.isa.speed import Device
from texpr.model.plan.reach import size_of
from texpr.planner.copies import COPIED
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest, NoPlan, nests
from texpr.planner.strategies import divided_products, products, promoted, promoted_warps, warpgroups
from texpr.planner.strategies.divided_products import LAUNCH, MICRO
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.planner.vectors import rows_begin_even
from texpr.relation.facts import known
from texpr.schedule.rewrite.materialise import given
from texpr.support.record import replace

SINGLE = 4.0
"""How much longer than modelled products take at least whose elements are brought one at a time, as no copy that goes on by
itself is of less than 4 bytes: it was 7.6 times, for bf16 4097 × 4095 × 4099 on an H200 (`bench/results/times.json`)."""


SHORTEST = 32
"""Elements of a row from which on it is worth whole chunks."""

SAID = "rows of operands are copied to multiples of 16 bytes first"


class Pitched(Script, kw_only=True):
    """Copies `arrays` ahead, and leaves the nest, which reads the copies, to other strategies."""

    arrays: tuple[Buffer, ...]
    subject: Subject

    def run(self) -> Sequence[Subject]:
        """Applies every directive. Raises Refused."""
        for array in self.arrays:
            self.must("stage", array.name, results=self.fresh(array.name, "g"), of=array, **{"in": "global"})
        return [
            replace(self.subject, par=par, nest=nest, state=self.state, tiles_only=True)
            for par, nest in nests(self.state.function)
            if par.sym is self.subject.par.sym
        ]


def arrays_of(subject: Subject) -> tuple[Buffer, ...]:
    """The operands of a product that are arguments, read only, and have rows that may begin anywhere; but scales, which threads
    bring."""
    nest, function = subject.nest, subject.state.function
    assert isinstance(nest, Nest), "as it applies"
    facts = known(given(function))
    found = (b for b in nest.read_only() if b.role == "input" and b.rank > 1 and not _is_short(b.shape[-1]))
    found = (b for b in found if b.dtype != F8E8M0)
    return tuple(b for b in dict.fromkeys(found) if not rows_begin_even(b, max(1, CHUNK // b.dtype.bytes), facts))


def is_even(buffer: Buffer) -> bool:
    """Whether rows are known to be whole chunks, wherever the first one begins."""
    pitch = buffer.strides[-2] if buffer.strides is not None else buffer.shape[-1]
    return pitch.is_constant and pitch.constant * buffer.dtype.bytes % CHUNK == 0


def _is_short(row: Expr) -> bool:
    return row.is_constant and row.constant < SHORTEST


def _applies(subject: Subject) -> bool:
    plain = isinstance(subject.nest, Nest) and not subject.is_part and subject.state.target.has_warps
    return plain and any(each.applies(subject) for each in _others()) and bool(arrays_of(subject))


def _others() -> Iterator[Strategy]:
    """What else has products."""
    yield from (each.STRATEGY for each in (products, warpgroups, promoted, promoted_warps, divided_products))


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    device = DEVICES.get(subject.state.target.name)
    if refused or device is None or not device.bandwidth.dram.value:
        return None
    arrays = arrays_of(subject)
    before, after = _cost(subject), _after(subject, arrays)
    if before is None or after is None:
        return None
    cost = after + sum(copying(array, device) for array in arrays)
    facts = known(given(subject.state.function))
    single = any(not rows_begin_even(array, max(1, COPIED[-1] // array.dtype.bytes), facts) for array in arrays)
    if cost > before * (SINGLE if single else 1.0):
        return None
    script = Pitched(subject.state, subject.span, arrays=arrays, subject=subject)
    return Proposal(script, min(cost, 0.99 * before), said=SAID)


def copying(array: Buffer, device: Device) -> float:
    """Microseconds of a copy of an array."""
    return LAUNCH + 2 * size_of(array, {}) / (device.bandwidth.dram.value or 1.0) * MICRO


def _after(subject: Subject, arrays: Sequence[Buffer]) -> float | None:
    """The cost of the product of copies."""
    trial = Pitched(subject.state, subject.span, arrays=tuple(arrays), subject=subject)
    try:
        left = trial.run()
    except Refused:
        return None
    return _cost(left[0]) if left else None


def _cost(subject: Subject) -> float | None:
    """The least cost of what others propose, as far as somebody knows it."""
    costs = list[float]()
    for each in _others():
        try:
            proposal = each.propose(subject, ()) if each.applies(subject) else None
        except NoPlan:
            continue
        if proposal is not None and proposal.cost:
            costs.append(proposal.cost)
    return min(costs, default=None)


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose)
"""Where rows begin anywhere."""
