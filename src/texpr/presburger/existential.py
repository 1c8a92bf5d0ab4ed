"""Existentials checked with an untrusted witness: for each point there is an object, at claimed coordinates.

The claimed coordinates are substituted, and no point may remain: so a formula with an existential becomes one without. If a
point remains, the existential is decided at that point, with numbers: either no object exists there, a counter-example, or
the claim was incomplete, which is undecided. On request the solver then looks for coordinates by itself, which takes longer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from texpr.affine.expr import Expr, Number, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, conj, mapped, negate, rename, syms
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.questions import Point, witness
from texpr.presburger.solve.counted import Count, in_counts
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.ranges import ranges_of, within
from texpr.presburger.solve.relaxed import eliminated, flat, relaxed
from texpr.support.record import Record


class ExistsWitness(Record):
    """Objects with coordinates `names` that fulfil `facts`, over these and the symbols of the caller.

    `said`: the claimed coordinates, in order of preference, each a tuple over the caller's symbols.
    """

    names: Mapping[Sym, Sym]
    facts: tuple[Formula, ...]
    said: tuple[tuple[Expr, ...], ...]

    def at(self, number: int) -> tuple[Formula, ...]:
        """The facts at the claim number `number`."""
        own = dict(zip(self.names.values(), self.said[number], strict=True))
        return tuple([rename(fact, own) for fact in self.facts])

    @property
    def counted(self) -> tuple[Sequence[Formula], tuple[Count, ...]]:
        """Equal facts in which sums of several coordinates, such as a tile's number, have names; and these sums."""
        every = [*flat(self.facts)]
        return in_counts(every, ranges_of(every)) or (self.facts, ())

    def missed(self, known: Collection[Formula], plain: Simplifier) -> Iterator[Formula]:
        """For each claim that may hold, the negation of its facts, without those that follow from `known`."""
        every, counts = self.counted
        for at in self.said:
            if len(at) == len(self.names):
                own = dict(zip(self.names.values(), at, strict=True))
                own |= {count.name: plain(count.value.substitute(own)) for count in counts}
                facts = (fact for fact in flat(rename(fact, own) for fact in every) if fact not in known)
                plainer = (fact for fact in flat(mapped(fact, plain) for fact in facts) if fact not in known)
                left = [(fact, negate(fact)) for fact in plainer if not is_plain(fact, plain.known)]
                if not any(never in known or is_plain(never, plain.known) for _, never in left):
                    yield negate(conj(fact for fact, _ in left))


def is_plain(fact: Formula, known: Known) -> bool:
    """Whether a comparison holds by the ranges of its symbols."""
    match fact:
        case Ge(value):
            return known.interval(value)[0] >= 0
        case Eq(value):
            return known.interval(value) == (0, 0)
        case _:
            return False


def nowhere(
    facts: Sequence[Formula],
    found: Sequence[ExistsWitness],
    premises: Formula,
    plain: Simplifier | None = None,
    *,
    solving: bool = False,
) -> Point | None:
    """A point with `facts` at which no object of `found` exists; None if there is none. `plain`: a simplifier that knows the
    ranges of the caller's symbols. `solving`: the solver looks for unclaimed coordinates. Raises Undecided."""
    known, plain = {*flat(facts)}, plain or within(facts)
    missed = [missed for each in found for missed in each.missed(known, plain)]
    try:
        point = witness((*facts, *missed), premises)
    except Undecided:
        if solving and _is_everywhere((*facts, premises), found):
            return None
        raise
    if point is None:
        return None
    numbers = {sym: expr(value) for sym, value in point.items()}
    if all(witness([rename(fact, numbers) for fact in each.facts], TRUE) is None for each in found):
        return point
    if solving and _is_everywhere((*facts, premises), found):
        return None
    raise Undecided(f"where it is done was not said at {', '.join(f'{s} = {v}' for s, v in point.items())}")


def everywhere(facts: Sequence[Formula], found: Sequence[ExistsWitness], premises: Formula) -> bool:
    """Whether a cheap proof shows that at each point with `facts` an object of `found` exists; False is no answer."""
    known, plain = {*flat(facts)}, within(facts)
    return refuted((*facts, *(missed for each in found for missed in each.missed(known, plain)), premises))


def _is_everywhere(facts: Sequence[Formula], found: Sequence[ExistsWitness]) -> bool:
    """Whether at every point with `facts` an object of `found` exists, by isl. Raises Undecided."""
    left = Set.of((), relaxed(conj(facts)))
    for each in found:
        own_names = {*each.names.values()}
        said = {s for number in syms(conj(each.facts)) if isinstance(number, Number) for e in number.args for s in e.syms()}
        told, _ = eliminated([*flat(each.facts)], (said & own_names).__contains__)  # then numbers are those of the caller
        own = relaxed(conj(told))
        unknown = (s for s in syms(own) - syms(conj(each.facts)) if s.name.startswith("⟪"))
        if not any(name.name in s.name for s in unknown for name in own_names):
            left = left.subtract(Set.of((), own, exists=tuple(own_names)))
    return left.is_empty()
