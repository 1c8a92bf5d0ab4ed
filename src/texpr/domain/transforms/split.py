"""`I1, I2 = Split(I0, n)`: quotient and remainder by the inner extent; indivisible splits have holes at the end."""

from __future__ import annotations

from dataclasses import dataclass

from texpr.affine.expr import ZERO, Expr
from texpr.domain.iterdomain import Implication, IterDomain, divisor, high, low
from texpr.domain.transform import Transform


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

        The premise n ≥ 0 fails only where the input's extent is negative, which has no index at all.
        """
        whole, outer, inner = self.input, self.outer, self.inner
        size = (inner.extent,)
        both = frozenset((high(outer), high(inner)))
        return (
            Implication("Theorem 1", frozenset((high(whole), low(inner))), high(outer), premises=size),
            Implication("Theorem 1, lower half", frozenset((low(whole), high(inner))), low(outer), premises=size),
            Implication("Split: no holes below", frozenset((low(outer), low(inner))), low(whole), premises=size),
            Implication("Split: divisible", both, high(whole), premises=(whole.extent - outer.extent * inner.extent, *size)),
            *(Implication("Split: divisible", both, high(whole), size, ((n, whole.extent),)) for n in self.factors),
        )

    @property
    def factors(self) -> tuple[Expr, ...]:
        """The extents by which the input's was divided, rounded up, to give the other (both, where both ways agree)."""
        whole, sizes = self.input.extent, (self.inner.extent, self.outer.extent)
        pairs = zip(sizes, reversed(sizes), strict=True)
        return tuple(factor for factor, other in pairs if factor is not ZERO and other in _rounded_up(whole, factor))


def _rounded_up(whole: Expr, factor: Expr) -> tuple[Expr, ...]:
    """whole / factor, rounded up, in the forms in which it is written; the second holds for positive factors alone."""
    plain = -((-whole) // factor)
    return (plain, (whole + (factor - 1)) // factor) if factor.is_constant and factor.constant > 0 else (plain,)
