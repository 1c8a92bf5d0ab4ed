"""`I1 = Resize(I0, L, R)`: room for L more indices on the left and R on the right (holes), or fewer where they are negative."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from texpr.affine.expr import Expr
from texpr.affine.facts import Known
from texpr.domain.iterdomain import Bound, Implication, IterDomain, high, low
from texpr.domain.transform import Boxes, Proofs, Transform, Views


@dataclass(frozen=True, slots=True)
class Resize(Transform):
    """`output` = `input` + left; its extent is that of `input` + left + right. A negative expand drops indices."""

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
        """Theorem 3 on each side, where its sign admits it, and the converse for the other sign."""
        before, after = self.input, self.output
        return (
            Implication("Theorem 3", frozenset((high(before),)), high(after), premises=(self.right,)),
            Implication("Theorem 3, lower half", frozenset((low(before),)), low(after), premises=(self.left,)),
            Implication("Theorem 3, converse", frozenset((high(after),)), high(before), premises=(-self.right,)),
            Implication("Theorem 3, lower converse", frozenset((low(after),)), low(before), premises=(-self.left,)),
        )

    def keeps(self, known: Known) -> bool:
        """Where neither expand is negative."""
        return known.nonnegative(self.left) and known.nonnegative(self.right)

    @property
    def undoes(self) -> bool:
        """Always: a shift is inverted."""
        return True

    @property
    def kind(self) -> tuple[object, ...]:
        """Both expands."""
        return (Resize, self.left, self.right)

    @property
    def keeps_order(self) -> bool:
        """Always."""
        return True

    def holes(self, proofs: Proofs) -> Iterator[Bound]:
        """On each side with a positive expand."""
        if not proofs.known.nonnegative(-self.left):
            yield low(self.input)
        if not proofs.known.nonnegative(-self.right):
            yield high(self.input)

    def outside(self, known: Known) -> tuple[tuple[IterDomain, IterDomain], ...]:
        """Where no expand is negative, an index out of bounds of the output is out of bounds of the input."""
        return ((self.input, self.output),) if self.keeps(known) else ()

    def enclosed(self, boxes: Boxes) -> None:
        """A resized tile lies within the box; a resized tensor does not."""
        if boxes.is_factor(self.input):
            Transform.enclosed(self, boxes)  # a record with slots has no zero-argument `super`

    def viewed(self, views: Views) -> None:
        """Shifted."""
        views.shift(self.input, self.left, self.right, self.output)
