"""`I2 = Merge(I0, I1)`: one IterDomain that runs through both, the inner one fastest; it makes no holes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from texpr.affine.expr import Expr
from texpr.affine.facts import Known
from texpr.domain.iterdomain import Bound, Implication, IterDomain, divisor, high, low
from texpr.domain.terms import Merged, Term
from texpr.domain.transform import Boxes, Proofs, Transform, Views


@dataclass(frozen=True, slots=True)
class Merge(Transform):
    """`output` = outer · N + inner, where N is the extent of `inner`. Where N is 0 there is no index, and 1 stands for it."""

    outer: IterDomain
    inner: IterDomain
    output: IterDomain

    @property
    def inputs(self) -> tuple[IterDomain, ...]:
        """The IterDomains that are merged."""
        return (self.outer, self.inner)

    @property
    def outputs(self) -> tuple[IterDomain, ...]:
        """The merged IterDomain."""
        return (self.output,)

    @property
    def title(self) -> str:
        """Without parameters."""
        return "Merge"

    def up(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """index / N and index % N."""
        (index,) = indices
        size = divisor(self.inner.extent)
        return (index // size, index % size)

    def down(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """outer · N + inner."""
        outer, inner = indices
        return (outer * self.inner.extent + inner,)

    def implications(self) -> tuple[Implication, ...]:
        """Theorem 2, for both sides; the inner index is a remainder and in bounds where there is any.

        The inner extent may be 0: then the upper bound of the inner index fails, and takes the place of the premise N > 0.
        """
        outer, inner, merged = self.outer, self.inner, self.output
        some = (inner.extent - 1,)
        return (
            Implication("Theorem 2", frozenset((high(outer),)), high(merged), premises=some),
            Implication("Theorem 2", frozenset((high(outer), high(inner))), high(merged)),
            Implication("Theorem 2, converse", frozenset((high(merged),)), high(outer), premises=some),
            Implication("Theorem 2, converse", frozenset((high(merged), high(inner))), high(outer)),
            Implication("Theorem 2, lower half", frozenset((low(outer),)), low(merged)),
            Implication("Theorem 2, lower half", frozenset((low(merged),)), low(outer)),
            Implication("Merge: a remainder is in bounds", frozenset(), low(inner)),
            Implication("Merge: a remainder is in bounds", frozenset(), high(inner), premises=some),
            Implication(
                "Merge: where there is an index, a remainder is in bounds",
                frozenset((low(merged), high(merged))),
                high(inner),
                premises=(inner.extent,),
            ),
        )

    def keeps(self, known: Known) -> bool:
        """Always."""
        return True

    def terms(self, of: tuple[Term, ...]) -> tuple[Term, ...]:
        """A merged term."""
        return (Merged(*of),)

    @property
    def keeps_order(self) -> bool:
        """It does."""
        return True

    def holes(self, proofs: Proofs) -> Iterator[Bound]:
        """None."""
        yield from ()

    def outside(self, known: Known) -> tuple[tuple[IterDomain, IterDomain], ...]:
        """The outer index is out of bounds where the merged one is."""
        return ((self.outer, self.output),)

    @property
    def fills(self) -> bool:
        """Always: a product is positive where its factors are."""
        return True

    def enclosed(self, boxes: Boxes) -> None:
        """Both inputs, where the output is, strided or not."""
        boxes.enclose_parts(self.output, self.outer, self.inner)

    def viewed(self, views: Views) -> None:
        """Joined."""
        views.join(self.outer, self.inner, self.output)
