"""`I1, I2 = Split(I0, n)`: quotient and remainder by the inner extent; indivisible splits have holes at the end."""

from __future__ import annotations

from dataclasses import dataclass

from texpr.affine.expr import Expr
from texpr.domain.iterdomain import Implication, IterDomain, high, low
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
        return (index // self.inner.extent, index % self.inner.extent)

    def implications(self) -> tuple[Implication, ...]:
        """Theorem 1, with the premise that it needs (the inner index in bounds), its lower half, and the divisible case."""
        whole, outer, inner = self.input, self.outer, self.inner
        both = frozenset((high(outer), high(inner)))
        exact = (((outer.extent * inner.extent) - whole.extent) * -1,)  # outer · n ≤ S: with S ≤ outer · n, equal
        return (
            Implication("Theorem 1", frozenset((high(whole), low(inner))), high(outer)),
            Implication("Theorem 1, lower half", frozenset((low(whole), high(inner))), low(outer)),
            Implication("Split: no holes below", frozenset((low(outer), low(inner))), low(whole)),
            Implication("Split: divisible", both, high(whole), premises=exact),
        )
