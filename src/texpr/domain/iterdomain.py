"""IterDomains, the comparisons that keep their indices in bounds, and implications between these."""

from __future__ import annotations

from enum import Enum

from texpr.affine.expr import ZERO, Expr, Sym, expr, maximum
from texpr.support.record import Record


class IterDomain(Record):
    """A range of iteration, 0 ≤ index < extent. `sym` names its index, uniquely in a graph; the extent is never negative."""

    sym: Sym
    extent: Expr

    def __str__(self) -> str:
        """The notation of the figures: the name, and the extent in braces."""
        return f"{self.sym}{{{self.extent}}}"


class Side(Enum):
    """The end of an IterDomain that a comparison guards."""

    LOW = "low"  # 0 ≤ index
    HIGH = "high"  # index < extent


class Bound(Record):
    """One comparison on the index of one IterDomain."""

    domain: IterDomain
    side: Side

    def margin(self, index: Expr) -> Expr:
        """The expression that is ≥ 0 exactly where the comparison holds of `index`."""
        return index if self.side is Side.LOW else self.domain.extent - 1 - index

    def __str__(self) -> str:
        left, right = (ZERO, expr(self.domain.sym)) if self.side is Side.LOW else (expr(self.domain.sym), self.domain.extent)
        return f"{left} {'<=' if self.side is Side.LOW else '<'} {right}"


class Implication(Record):
    """`given` together imply `then` where every expression of `premises` is ≥ 0 and each pair (n, e) of `divides` has n | e.

    `theorem` names the statement in the docs on theory.
    """

    theorem: str
    given: frozenset[Bound]
    then: Bound
    premises: tuple[Expr, ...] = ()
    divides: tuple[tuple[Expr, Expr], ...] = ()


def divisor(extent: Expr) -> Expr:
    """`extent` as a divisor: 1 where it is 0, as there is no index to divide then."""
    return maximum(extent, 1)


def low(domain: IterDomain) -> Bound:
    """0 ≤ index."""
    return Bound(domain, Side.LOW)


def high(domain: IterDomain) -> Bound:
    """index < extent."""
    return Bound(domain, Side.HIGH)
