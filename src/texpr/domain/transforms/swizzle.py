"""`I2, I3 = Swizzle(I0, I1)`: the inner index permuted for each outer index, by XOR, by a cyclic shift, or by a user's
permutation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from texpr.affine.expr import Expr, Sym, expr, xor
from texpr.affine.facts import Known
from texpr.domain.iterdomain import Bound, Implication, IterDomain, divisor, high, low
from texpr.domain.transform import Proofs, Transform, Views


class Permutation(ABC):
    """A bijection of 0..extent of the inner IterDomain for each outer index, with its inverse."""

    __slots__ = ()

    @abstractmethod
    def forward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """The permuted inner index."""

    @abstractmethod
    def backward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """The inverse. Total, and in bounds for indices in bounds."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Its name in pictures."""

    def implications(self, before: IterDomain, after: IterDomain) -> tuple[Implication, ...]:
        """Implications between bounds of the inner IterDomain before and after; none, if nothing is known."""
        return ()

    @property
    def is_total(self) -> bool:
        """Whether it is a permutation for every extent."""
        return False

    def holes(self, inner: IterDomain, proofs: Proofs) -> Iterator[Bound]:
        """Bounds of the inner IterDomain that may fail where those of its image hold."""
        yield from (low(inner), high(inner))


@dataclass(frozen=True, slots=True)
class Xor(Permutation):
    """inner ^ (outer % 2^bits): the extent must be a multiple of 2^bits (otherwise the swizzle is refused)."""

    bits: int

    @property
    def title(self) -> str:
        """With the number of masks."""
        return f"xor {1 << self.bits}"

    def forward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """The low bits XORed with those of the outer index."""
        return xor(inner, outer, self.bits)

    def backward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """XOR is its own inverse."""
        return xor(inner, outer, self.bits)

    def implications(self, before: IterDomain, after: IterDomain) -> tuple[Implication, ...]:
        """An index never leaves its block of 2^bits, and the blocks fill the extent."""
        whole = ((expr(1 << self.bits), before.extent),)
        return tuple(
            Implication("Swizzle: xor stays in its block", frozenset((side(one),)), side(other), divides=needed)
            for side, needed in ((low, ()), (high, whole))
            for one, other in ((before, after), (after, before))
        )

    def holes(self, inner: IterDomain, proofs: Proofs) -> Iterator[Bound]:
        """In the last block, if it is incomplete."""
        if not proofs.known.multiple(inner.extent, 1 << self.bits):
            yield high(inner)


@dataclass(frozen=True, slots=True)
class Shift(Permutation):
    """(inner + outer) % extent."""

    @property
    def title(self) -> str:
        """Without parameters."""
        return "shift"

    def forward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """Shifted right by the outer index."""
        return (inner + outer) % divisor(extent)

    def backward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """Shifted left by the outer index."""
        return (inner - outer) % divisor(extent)

    def implications(self, before: IterDomain, after: IterDomain) -> tuple[Implication, ...]:
        """The image is a remainder, hence always in bounds: there is no converse."""
        return (
            Implication("Swizzle: a remainder is in bounds", frozenset(), low(before)),
            Implication("Swizzle: a remainder is in bounds", frozenset(), high(before), premises=(before.extent - 1,)),
            Implication("Swizzle: a remainder is in bounds", frozenset((low(after), high(after))), high(before)),
        )

    @property
    def is_total(self) -> bool:
        """(i + o) mod n and (i - o) mod n are inverses at every n."""
        return True

    def holes(self, inner: IterDomain, proofs: Proofs) -> Iterator[Bound]:
        """None: the index before the shift is a remainder."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Custom(Permutation):
    """`to` and `back`, expressions over the symbols `outer` and `inner` and sizes: a user's promise that they are inverses.

    `texpr.domain.coverage` checks the promise. Until it is proved, both bounds of the inner index before it are tested.
    """

    to: Expr
    back: Expr
    outer: Sym
    inner: Sym

    @property
    def title(self) -> str:
        """With `to`."""
        return f"{self.inner} -> {self.to}"

    def forward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """`to`."""
        return self.to.substitute({self.outer: outer, self.inner: inner})

    def backward(self, outer: Expr, inner: Expr, extent: Expr) -> Expr:
        """`back`."""
        return self.back.substitute({self.outer: outer, self.inner: inner})


@dataclass(frozen=True, slots=True)
class Swizzle(Transform):
    """Outer indices stay; inner ones are permuted by `permutation`. Extents are unchanged."""

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
        """The inner index before the permutation."""
        outer, inner = indices
        return (outer, self.permutation.backward(outer, inner, self.inner.extent))

    def down(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The inner index permuted."""
        outer, inner = indices
        return (outer, self.permutation.forward(outer, inner, self.inner.extent))

    def implications(self) -> tuple[Implication, ...]:
        """Theorem 4, for both sides of the outer IterDomain, and the implications of the permutation for the inner one."""
        before, after = self.outer, self.outer_output
        outer = tuple(
            Implication("Theorem 4", frozenset((side(one),)), side(other))
            for side in (low, high)
            for one, other in ((before, after), (after, before))
        )
        return (*outer, *self.permutation.implications(self.inner, self.inner_output))

    def keeps(self, known: Known) -> bool:
        """Where it is a permutation for every extent."""
        return self.permutation.is_total

    @property
    def kind(self) -> tuple[object, ...]:
        """The permutation."""
        return (Swizzle, self.permutation)

    def holes(self, proofs: Proofs) -> Iterator[Bound]:
        """Those of the permutation; the outer index is unchanged."""
        return self.permutation.holes(self.inner, proofs)

    def outside(self, known: Known) -> tuple[tuple[IterDomain, IterDomain], ...]:
        """The outer index is unchanged."""
        return ((self.outer, self.outer_output),)

    def viewed(self, views: Views) -> None:
        """Raises Refused: a swizzled index has no stride."""
        views.refuse(self.outer, "a swizzle between the tensor and the box", "swizzle the tile, or its coordinates")
