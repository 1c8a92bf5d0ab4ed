"""`I1 = Resize(I0, L, R)`: room for L more indices on the left and R on the right (holes), or fewer where they are negative."""

from __future__ import annotations

from dataclasses import dataclass

from texpr.affine.expr import Expr
from texpr.domain.iterdomain import Implication, IterDomain, high, low
from texpr.domain.transform import Transform


@dataclass(frozen=True, slots=True)
class Resize(Transform):
    """`output` = `input` + left; its extent is that of `input` + left + right. A negative expand leaves indices out."""

    input: IterDomain
    left: Expr
    right: Expr
    output: IterDomain

    @property
    def inputs(self) -> tuple[IterDomain, ...]:
        """The IterDomain before."""
        return (self.input,)

    @property
    def outputs(self) -> tuple[IterDomain, ...]:
        """The IterDomain after."""
        return (self.output,)

    @property
    def title(self) -> str:
        """With both expands."""
        return f"Resize({self.left}, {self.right})"

    def up(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """index − left."""
        (index,) = indices
        return (index - self.left,)

    def down(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """index + left."""
        (index,) = indices
        return (index + self.left,)

    def implications(self) -> tuple[Implication, ...]:
        """Theorem 3 on each side, with the sign that it needs, and its converse for the other sign."""
        before, after = self.input, self.output
        return (
            Implication("Theorem 3", frozenset((high(before),)), high(after), premises=(self.right,)),
            Implication("Theorem 3, lower half", frozenset((low(before),)), low(after), premises=(self.left,)),
            Implication("Theorem 3, converse", frozenset((high(after),)), high(before), premises=(-self.right,)),
            Implication("Theorem 3, lower converse", frozenset((low(after),)), low(before), premises=(-self.left,)),
        )
