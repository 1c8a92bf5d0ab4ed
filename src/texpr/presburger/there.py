"""That for each point there is something, at coordinates that somebody says, who is not believed.

The coordinates are put in, and no point must remain: so a question with a "there is" becomes one without. If one remains, all
coordinates are tried at that point, with numbers: either there is nothing, or it was not said where it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, conj, mapped, negate, rename
from texpr.presburger.questions import Point, witness
from texpr.presburger.raw import Undecided
from texpr.presburger.relaxed import flat
from texpr.support.record import Record


class There(Record):
    """Something whose coordinates have these `names`, with `facts` over them and the symbols of who asks.

    `said`: coordinates at which there may be one, in order, over the symbols of who asks.
    """

    names: Mapping[Sym, Sym]
    facts: tuple[Formula, ...]
    said: tuple[tuple[Expr, ...], ...]

    def missed(self, known: Collection[Formula], plain: Simplifier) -> Iterator[Formula]:
        """When there is none at said coordinates, where all of `known` hold."""
        for at in self.said:
            if len(at) == len(self.names):
                own = dict(zip(self.names.values(), at, strict=True))
                facts = flat(mapped(rename(fact, own), plain) for fact in self.facts)
                yield negate(conj(f for f in facts if f not in known and not is_plain(f, plain.known)))


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
    facts: Sequence[Formula], found: Sequence[There], premises: Formula, plain: Simplifier | None = None
) -> Point | None:
    """A point with `facts` for which there is none of `found`. `plain`: knows ranges of who asks. Raises Undecided."""
    known, plain = {*flat(facts)}, plain or Simplifier(Known({}))
    missed = [missed for each in found for missed in each.missed(known, plain)]
    point = witness((*facts, *missed), premises)
    if point is None:
        return None
    numbers = {sym: expr(value) for sym, value in point.items()}
    for each in found:
        if witness([rename(fact, numbers) for fact in each.facts], TRUE) is not None:
            raise Undecided(f"where it is done was not said at {', '.join(f'{s} = {v}' for s, v in point.items())}")
    return point
