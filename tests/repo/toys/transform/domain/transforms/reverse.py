"""`I1 = Reverse(I0)`: the same indices, the last one first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from texpr.affine.expr import Expr
from texpr.domain.iterdomain import Bound, Implication, IterDomain, high, low
from texpr.domain.transform import Proofs, Transform


@dataclass(frozen=True, slots=True)
class Reverse(Transform):
    """`output` = extent - 1 - `input`."""

    input: IterDomain
    output: IterDomain

    @property
    def inputs(self) -> tuple[IterDomain, ...]:
        """The IterDomain before."""
        return (self.input,)

    @property
    def outputs(self) -> tuple[IterDomain, ...]:
        """The IterDomain after, of the same extent."""
        return (self.output,)

    @property
    def title(self) -> str:
        """Plain."""
        return "Reverse"

    def up(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """From the end."""
        return (self.input.extent - 1 - indices[0],)

    def down(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """From the end."""
        return (self.input.extent - 1 - indices[0],)

    def implications(self) -> tuple[Implication, ...]:
        """Each end is in bounds where the other end of the other index is."""
        ends = ((low, high), (high, low))
        pairs = ((self.input, self.output), (self.output, self.input))
        return tuple(
            Implication("Reverse: ends change places", frozenset((one(before),)), other(after))
            for one, other in ends
            for before, after in pairs
        )

    def holes(self, proofs: Proofs) -> Iterator[Bound]:
        """None."""
        yield from ()
