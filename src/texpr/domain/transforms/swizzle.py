"""`I2, I3 = Swizzle(I0, I1)`: the inner index permuted within each outer index, by XOR, by a cyclic shift, or as the user says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from texpr.affine.expr import Expr, xor
from texpr.domain.iterdomain import Implication, IterDomain, high, low
from texpr.domain.transform import Transform


class Permutation(ABC):
    """A bijection of 0..extent of the inner IterDomain for each outer index, with its inverse."""

    __slots__ = ()

    @abstractmethod
    def forward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """Where the inner index goes."""

    @abstractmethod
    def backward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """Where it came from. Total, and in bounds for what is in bounds."""

    @property
    @abstractmethod
    def title(self) -> str:
        """How pictures call it."""


@dataclass(frozen=True, slots=True)
class Xor(Permutation):
    """inner ^ (outer % 2^bits): the extent is a multiple of 2^bits (or the swizzle is refused)."""

    bits: int

    @property
    def title(self) -> str:
        """With the number of values that alternate."""
        return f"xor {1 << self.bits}"

    def forward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """Low bits crossed with those of the outer index."""
        return xor(inner, outer, self.bits)

    def backward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """The same again."""
        return xor(inner, outer, self.bits)


@dataclass(frozen=True, slots=True)
class Shift(Permutation):
    """(inner + outer) % extent."""

    @property
    def title(self) -> str:
        """Plain."""
        return "shift"

    def forward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """Right by the outer index."""
        return (inner + outer) % extent

    def backward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """Left by the outer index."""
        return (inner - outer) % extent


@dataclass(frozen=True, slots=True)
class Swizzle(Transform):
    """Outer indices stay; inner ones are permuted by `permutation`. Extents stay."""

    outer: IterDomain
    inner: IterDomain
    permutation: Permutation
    outer_output: IterDomain
    inner_output: IterDomain

    @property
    def inputs(self) -> tuple[IterDomain, ...]:
        """Outer and inner before."""
        return (self.outer, self.inner)

    @property
    def outputs(self) -> tuple[IterDomain, ...]:
        """Outer and inner after."""
        return (self.outer_output, self.inner_output)

    @property
    def title(self) -> str:
        """With the kind."""
        return f"Swizzle({self.permutation.title})"

    def up(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The inner index before it was permuted."""
        outer, inner = indices
        return (outer, self.permutation.backward(outer, inner, self.inner.extent))

    def down(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The inner index permuted."""
        outer, inner = indices
        return (outer, self.permutation.forward(outer, inner, self.inner.extent))

    def implications(self) -> tuple[Implication, ...]:
        """Theorem 4, for both sides."""
        before, after = self.outer, self.outer_output
        return tuple(
            Implication("Theorem 4", frozenset((side(one),)), side(other))
            for side in (low, high)
            for one, other in ((before, after), (after, before))
        )
