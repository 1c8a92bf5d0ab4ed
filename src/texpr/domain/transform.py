"""What every transform of IterDomains answers. Each lives in a file of its own in `texpr.domain.transforms`.

Whoever works on graphs asks these methods and names no transform, so a new one is one file. `up`, `down` and the bounds are its
meaning; every other answer has a default that is right for any transform, and costs only proofs that are not found, or copies
that are refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol

from texpr.affine.expr import Expr
from texpr.affine.facts import Known
from texpr.domain.iterdomain import Bound, Implication, IterDomain, high, low
from texpr.domain.terms import Other, Term


class Proofs(Protocol):
    """What can be proved where the loops over a graph's leaves run."""

    @property
    def known(self) -> Known:
        """What is known there."""
        ...

    def divides(self, n: Expr, value: Expr) -> bool:
        """Whether n divides `value` at all sizes, by proof."""
        ...

    def is_zero(self, value: Expr) -> bool:
        """Whether `value` is 0 at all sizes, by proof."""
        ...


class Boxes(Protocol):
    """Which IterDomains lie within a box of a copy: asked and told from the leaves up, one transform at a time."""

    def whole(self, *domains: IterDomain) -> bool:
        """Whether all of `domains` are within the box, and nothing of them is skipped."""
        ...

    def is_factor(self, domain: IterDomain) -> bool:
        """Whether somebody chose the extent of `domain`, as a split's factor."""
        ...

    def enclose(self, *domains: IterDomain) -> None:
        """`domains` lie within the box."""
        ...

    def enclose_parts(self, merged: IterDomain, *domains: IterDomain) -> None:
        """`domains` do where `merged`, which runs through them in order, does."""
        ...

    def enclose_every(self, whole: IterDomain, outer: IterDomain, inner: IterDomain) -> bool:
        """`whole`, every n-th of it skipped but one, where `outer` is in the box, `inner` is not, and engines can; or False."""
        ...


class Views(Protocol):
    """How a tensor is seen, from its own IterDomains down to those that boxes are cut from: told one transform at a time."""

    def divide(self, transform: Transform, whole: IterDomain, outer: IterDomain, inner: IterDomain) -> None:
        """`whole` is seen as `outer` times `inner`. Raises Refused."""
        ...

    def join(self, outer: IterDomain, inner: IterDomain, merged: IterDomain) -> None:
        """Both are seen as one, `inner` fastest. Raises Refused."""
        ...

    def shift(self, before: IterDomain, left: Expr, right: Expr, after: IterDomain) -> None:
        """`before` is seen with room for `left` before it, and for `right` after it. Raises Refused."""
        ...

    def refuse(self, domain: IterDomain, reason: str, helps: str) -> None:
        """It cannot be seen so. Raises Refused."""
        ...


class Transform(ABC):
    """An expression on IterDomains: `inputs` are nearer to the logical domain, `outputs` nearer to the leaves.

    `up` is what code needs: the indices of the inputs from those of the outputs. `down` is its inverse on what is in bounds. A
    point of the outputs is a *hole* where `up` leaves the bounds of an input.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def inputs(self) -> tuple[IterDomain, ...]:
        """The IterDomains that it takes."""

    @property
    @abstractmethod
    def outputs(self) -> tuple[IterDomain, ...]:
        """The IterDomains that it gives."""

    @abstractmethod
    def up(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The inputs' indices from the outputs'. Total: out of bounds, too."""

    @abstractmethod
    def down(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The outputs' indices from the inputs', which are in bounds."""

    @abstractmethod
    def implications(self) -> tuple[Implication, ...]:
        """What being in bounds at some of its IterDomains says of the others (the theorems of the docs on theory)."""

    @property
    @abstractmethod
    def title(self) -> str:
        """How pictures and messages call it: `Split(6)`."""

    @property
    def positive(self) -> tuple[Expr, ...]:
        """What must be positive for it to mean what it says; whoever applies it proves that, or has it checked."""
        return ()

    @property
    def factors(self) -> tuple[IterDomain, ...]:
        """Outputs whose extent was chosen and not counted."""
        return ()

    # Every index once: `texpr.domain.coverage`.

    def keeps(self, known: Known) -> bool:
        """Whether its kind alone says that each index in bounds goes to a place of its own, in bounds.

        Where it says nothing, the same is proved of `down` and `up`.
        """
        return False

    @property
    def undoes(self) -> bool:
        """Whether `up` undoes `down` of every index, in bounds or not: then no two go to one place, but some may to none."""
        return False

    # Equal schedules: `texpr.domain.equivalence.decide`.

    @property
    def kind(self) -> tuple[object, ...]:
        """The transform without the names that it gives: equal ones do the same. By default it is equal to itself only."""
        return (self,)

    def terms(self, of: tuple[Term, ...]) -> tuple[Term, ...]:
        """What the outputs are, where the inputs are `of`."""
        return tuple(Other(self.kind, of, at, d.extent) for at, d in enumerate(self.outputs))

    @property
    def keeps_order(self) -> bool:
        """Whether indices of the outputs, compared in order, compare as those of the inputs do."""
        return False

    # Bounds: `texpr.tma.correctness`, `texpr.schedule.stage.views`.

    def holes(self, proofs: Proofs) -> Iterator[Bound]:
        """Bounds of inputs that may fail although those of the outputs hold."""
        yield from (side(domain) for domain in self.inputs for side in (low, high))

    def outside(self, known: Known) -> tuple[tuple[IterDomain, IterDomain], ...]:
        """Pairs of an input and an output: an index out of the bounds of that output is out of the bounds of that input."""
        return ()

    @property
    def fills(self) -> bool:
        """Whether no input is empty where no output is."""
        return False

    # Boxes of copies: `texpr.tma.boxing`.

    def enclosed(self, boxes: Boxes) -> None:
        """Tells which inputs lie within a box, going up. By default all do where all of the outputs do."""
        if boxes.whole(*self.outputs):
            boxes.enclose(*self.inputs)

    def viewed(self, views: Views) -> None:
        """Tells how what is seen of the inputs is seen of the outputs, going down. Raises Refused: by default always."""
        views.refuse(self.inputs[0], f"a {self.title} between the tensor and the box", "box the tensor itself")
