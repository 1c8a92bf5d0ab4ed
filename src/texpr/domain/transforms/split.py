"""`I1, I2 = Split(I0, n)`: quotient and remainder by the inner extent; indivisible splits have holes at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from texpr.affine.expr import ZERO, Expr
from texpr.affine.facts import Known
from texpr.domain.iterdomain import Bound, Implication, IterDomain, divisor, high, low
from texpr.domain.terms import Part, Term
from texpr.domain.transform import Boxes, Proofs, Transform, Views


@dataclass(frozen=True, slots=True)
class Split(Transform):
    """`input` = outer · n + inner, where n is the extent of `inner` (positive), and outer · n covers the input."""

    input: IterDomain
    outer: IterDomain
    inner: IterDomain

    @property
    def inputs(self) -> tuple[IterDomain, ...]:
        """The IterDomain that is split."""
        return (self.input,)

    @property
    def outputs(self) -> tuple[IterDomain, ...]:
        """The quotient and the remainder."""
        return (self.outer, self.inner)

    @property
    def title(self) -> str:
        """With the factor."""
        return f"Split({self.inner.extent})"

    def up(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """outer · n + inner."""
        outer, inner = indices
        return (outer * self.inner.extent + inner,)

    def down(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """index / n and index % n."""
        (index,) = indices
        size = divisor(self.inner.extent)
        return (index // size, index % size)

    def implications(self) -> tuple[Implication, ...]:
        """Theorem 1, with the premise that it needs (the inner index in bounds), its lower half, and the divisible case.

        The premise n ≥ 0 fails only where the input's extent is negative, and so has no index at all.
        """
        whole, outer, inner = self.input, self.outer, self.inner
        size = (inner.extent,)
        both = frozenset((high(outer), high(inner)))
        return (
            Implication("Theorem 1", frozenset((high(whole), low(inner))), high(outer), premises=size),
            Implication("Theorem 1, lower half", frozenset((low(whole), high(inner))), low(outer), premises=size),
            Implication("Split: no holes below", frozenset((low(outer), low(inner))), low(whole), premises=size),
            Implication("Split: divisible", both, high(whole), premises=(whole.extent - outer.extent * inner.extent, *size)),
            *(Implication("Split: divisible", both, high(whole), size, ((n, whole.extent),)) for n in self._divisors),
        )

    @property
    def positive(self) -> tuple[Expr, ...]:
        """The divisor of the input's extent."""
        return self._divisors[:1]

    @property
    def factors(self) -> tuple[IterDomain, ...]:
        """The inner one, by which boxes are cut."""
        return (self.inner,)

    def keeps(self, known: Known) -> bool:
        """Always."""
        return True

    @property
    def kind(self) -> tuple[object, ...]:
        """Both extents."""
        return (Split, self.outer.extent, self.inner.extent)

    def terms(self, of: tuple[Term, ...]) -> tuple[Term, ...]:
        """Parts, where the outer extent follows from the inner one."""
        if self.inner.extent not in self._divisors:
            return Transform.terms(self, of)
        return (Part(of[0], self.inner.extent, True), Part(of[0], self.inner.extent, False))

    @property
    def keeps_order(self) -> bool:
        """Always."""
        return True

    def holes(self, proofs: Proofs) -> Iterator[Bound]:
        """At the end, unless the product of the outputs' extents is proved to be the input's extent."""
        whole = self.input.extent
        if any(proofs.divides(factor, whole) for factor in self._divisors):
            return
        if not proofs.is_zero(self.outer.extent * self.inner.extent - whole):
            yield high(self.input)

    def outside(self, known: Known) -> tuple[tuple[IterDomain, IterDomain], ...]:
        """The input is out of bounds where its quotient is."""
        return ((self.input, self.outer),)

    @property
    def fills(self) -> bool:
        """Always: an empty input has an empty output."""
        return True

    def enclosed(self, boxes: Boxes) -> None:
        """The input where both outputs are; and where `outer` is, with a stride, if engines can stride so."""
        if not boxes.enclose_every(self.input, self.outer, self.inner):
            Transform.enclosed(self, boxes)

    def viewed(self, views: Views) -> None:
        """Divided."""
        views.divide(self, self.input, self.outer, self.inner)

    @property
    def _divisors(self) -> tuple[Expr, ...]:
        """The extents by which the input's was divided, rounding up, to give the other (both, where both ways agree)."""
        whole, sizes = self.input.extent, (self.inner.extent, self.outer.extent)
        pairs = zip(sizes, reversed(sizes), strict=True)
        return tuple(factor for factor, other in pairs if factor is not ZERO and other in _rounded_up(whole, factor))


def _rounded_up(whole: Expr, factor: Expr) -> tuple[Expr, ...]:
    """whole / factor, rounded up, in each of its written forms; the second is right only for positive factors."""
    plain = -((-whole) // factor)
    return (plain, (whole + (factor - 1)) // factor) if factor.is_constant and factor.constant > 0 else (plain,)
