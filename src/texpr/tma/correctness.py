"""What a copy leaves in holes: TMA-protected IterDomains, levels, and the lowering of a copy by what its consumers require.

Definition 1, Theorems 1, 4, 5, 6 (FTTC) and Table 1 of "TMA Modeling In Depth" (nvFuser, NVIDIA), with full premises and proofs
in docs/theory/tma.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from texpr.affine.expr import ONE, Expr
from texpr.domain.context import Context
from texpr.domain.correctness.holes import Number, Requirement, Weak, same_fill
from texpr.domain.iterdomain import Bound, IterDomain, low
from texpr.domain.predicates.implied import Hypotheses
from texpr.domain.predicates.needed import Predicate
from texpr.domain.transform import Transform
from texpr.isa.engine import CHUNK
from texpr.presburger.formula import Eq
from texpr.support.record import Record
from texpr.tma.elements import Fill
from texpr.tma.model import Copy, Refusal


class Level(Enum):
    """Whether strong correctness with the fill 0 is achievable."""

    FREE = 1  # every hole is out of the tensor's bounds
    PREDICATED = 2  # the other holes are whole tiles, which predicates exclude
    UNACHIEVABLE = 3  # some tile has both data and holes that the engine takes for data


class Analysis(Record):
    """`protected`: the TMA-protected IterDomains. `needed`: comparisons that detect the holes which the engine does not fill.

    `mixed`: boxes with a tile of both data and such holes. `has_holes`: whether there are holes of any kind.
    """

    protected: frozenset[IterDomain]
    needed: tuple[Predicate, ...]
    mixed: tuple[IterDomain, ...]
    has_holes: bool

    @property
    def level(self) -> Level:
        """The level, as the sources define it."""
        return Level.UNACHIEVABLE if self.mixed else Level.PREDICATED if self.needed else Level.FREE


class Plain(Record):
    """The copy, unguarded. `optional`: predicates that may guard it, to save traffic for holes."""

    fill: Fill = Fill.ZERO
    optional: tuple[Predicate, ...] = ()


class Redirected(Record):
    """Where `predicates` hold, the copy; elsewhere a copy at `coordinates` outside the tensor, which only fills."""

    predicates: tuple[Predicate, ...]
    coordinates: tuple[Expr, ...]
    fill: Fill = Fill.ZERO


class Guarded(Record):
    """Where `predicates` hold, the copy; elsewhere nothing."""

    predicates: tuple[Predicate, ...]


Lowering: TypeAlias = Plain | Redirected | Guarded


class StoreLowering(Record):
    """A store, and the obligations under which it writes items only, to be proved or checked before a launch: each remainder
    is 0."""

    lowering: Plain | Guarded
    obligations: tuple[Eq, ...]


def fttc(size: int, box: int, step: int) -> bool:
    """Theorem 6: whether a dimension with this `size`, box and element stride makes strong correctness impossible."""
    return step < box < size and box % step != 0


def analysis(copy: Copy) -> Analysis:
    """The holes of a copy that the engine does not fill, and the comparisons that detect them."""
    context = Context(copy.graph, copy.known)
    below = tuple(_below(copy))
    alone = _alone(copy, context)
    protected = _protected(copy, below, alone, context)
    needed: dict[Bound, Predicate] = {}
    mixed: list[IterDomain] = []
    room = any(part.size is not part.domain.extent for each in copy.dimensions for part in each.parts)
    has_holes = room or copy.tile.holes > 0
    for transform in below:
        for bound in transform.holes(context):
            if context.known.nonnegative(context.margin(bound)):
                continue
            has_holes = True
            if bound.domain in alone:
                outer = alone[bound.domain]
                if outer is None or context.known.nonnegative(context.index(outer.sym)):
                    continue
                bound = low(outer)  # the box before the first one has a hole that is data
            elif bound.domain in protected:
                continue
            index = context.index(bound.domain.sym)
            if index.syms() & {leaf.sym for leaf in copy.bulk}:
                mixed.append(bound.domain)
            else:
                needed[bound] = Predicate(bound, index)
    return Analysis(protected, _irredundant(tuple(needed.values()), context), tuple(mixed), has_holes)


def _irredundant(needed: tuple[Predicate, ...], context: Context) -> tuple[Predicate, ...]:
    """`needed` without those proved to follow from the others inside the loops; those on inner loops are dropped first."""
    if len(needed) < 2:
        return needed
    kept = list(needed)
    hypotheses = Hypotheses(context, [each.margin for each in needed], apart=False)
    for each in reversed(needed):
        others = [other for other in kept if other is not each]
        if isinstance(hypotheses.imply([other.margin for other in others], each.margin), tuple):
            kept = others
    return tuple(kept)


def _below(copy: Copy) -> Iterator[Transform]:
    """The transforms between the TMA domain and the tile: neither views of the tensor, nor inside the tile."""
    reached = set(copy.domain)
    inside = set(copy.tile.graph.transforms)
    for transform in copy.graph.transforms:
        if transform in inside:
            continue
        if all(domain in reached for domain in transform.inputs):
            reached |= set(transform.outputs)
            yield transform


def _protected(
    copy: Copy, below: tuple[Transform, ...], alone: dict[IterDomain, IterDomain | None], context: Context
) -> frozenset[IterDomain]:
    """Definition 1."""
    found = {dimension.tested for dimension in copy.dimensions} | set(alone)
    for transform in below:
        found |= {inner for outer, inner in transform.outside(context.known) if outer in found}
    return frozenset(found)


def _alone(copy: Copy, context: Context) -> dict[IterDomain, IterDomain | None]:
    """The boxes that cover the rest of their dimension, and their coordinates: an index outside of such a box is outside of
    the tensor."""
    single = [each.parts[0] for each in copy.dimensions if len(each.parts) == 1]
    return {
        part.root: part.counted
        for part in single
        if part.root is not None and context.known.nonnegative(part.first + part.box - part.size)
    }


def lower_load(copy: Copy, required: Requirement) -> Plain | Redirected | Refusal:
    """Table 1, for a load whose consumers together need `required`."""
    found = analysis(copy)
    if isinstance(required, Weak):
        return Plain(optional=found.needed)
    if not found.has_holes:
        return Plain()
    fill = _fill(copy, required.fill)
    if fill is None:
        reason = f"holes must hold {required.fill}, and the engine fills with zero, or with nan where elements are floats"
        return Refusal(None, reason, "fill the buffer before, and guard the copy item by item")
    if copy.tile.holes:
        reason = f"{copy.tile.holes} holes lie below the tile, where the engine never writes"
        return Refusal(copy.tile.order[0], reason, "fill them once by threads, or allocate the tile without room in it")
    if found.mixed:
        return _unachievable(copy, found.mixed[0])
    if not found.needed:
        return Plain(fill)
    return Redirected(found.needed, tuple(-each.box for each in copy.dimensions), fill)


def lower_store(copy: Copy) -> StoreLowering | Refusal:
    """A store or a reduction: holes must not be written to items of other tiles."""
    found = analysis(copy)
    if found.mixed:
        return _unachievable(copy, found.mixed[0])
    inner = copy.dimensions[0].size * copy.element.size
    chunks = Context(copy.graph, copy.known).divides(ONE * CHUNK, inner)
    obligations = () if chunks else (Eq(inner % CHUNK),)
    return StoreLowering(Guarded(found.needed) if found.needed else Plain(), obligations)


def fill_of(value: Number) -> Fill | None:
    """The engine's fill by which holes get `value`, if there is one: zero, but not -0, or nan."""
    if same_fill(value, 0):
        return Fill.ZERO
    return Fill.NAN if value != value else None


def _fill(copy: Copy, value: Number) -> Fill | None:
    fill = fill_of(value)
    return None if fill is Fill.NAN and not copy.element.is_float else fill


def _unachievable(copy: Copy, box: IterDomain) -> Refusal:
    """The refusal by Theorem 6 for the dimension with this box; or for another hole within a tile."""
    for at, each in enumerate(copy.dimensions):
        e, b, s = each.element_stride, each.box, each.size
        if any(part.root == box for part in each.parts) and e is not ONE:
            reason = (
                f"in dimension {at}, the element stride {e} is less than the box {b} and does not divide it, "
                f"and the size {s} is not seen to be at most {b}"
            )
            helps = f"choose a box that {e} divides, a box as large as the tensor, or an element stride of at least {b}"
            return Refusal(box, reason, helps)
    told = " and ".join(
        f"dimension {at}, of size S = {each.size}, box B = {each.box}, element stride e = {each.element_stride}"
        for at, each in enumerate(copy.dimensions)
        if each.box is not ONE
    )
    reason = f"a tile is part data and part holes that lie in the tensor, in {told}"
    return Refusal(box, reason, "split so that holes fill whole tiles")
