"""The interface of transforms of IterDomains. Each lives in a file of its own in `texpr.domain.transforms`.

Clients of graphs use these methods and name no transform, so a new one is one file. `up`, `down` and the bounds define it;
every other method has a default that is right for any transform, at the cost of missed proofs or refused copies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Protocol, Self, cast

from texpr.affine.expr import Expr
from texpr.affine.facts import Known
from texpr.domain.iterdomain import Bound, Implication, IterDomain, high, low
from texpr.domain.terms import Other, Term


class Proofs(Protocol):
    """Proofs inside the loops over a graph's leaves."""

    @property
    def known(self) -> Known:
        """What is known there."""
        ...

    def divides(self, n: Expr, value: Expr) -> bool:
        """Whether n is proved to divide `value` at all sizes."""
        ...

    def is_zero(self, value: Expr) -> bool:
        """Whether `value` is proved to be 0 at all sizes."""
        ...


class Boxes(Protocol):
    """Which IterDomains lie within a box of a copy: propagated from the leaves up, one transform at a time."""

    def whole(self, *domains: IterDomain) -> bool:
        """Whether all of `domains` lie within the box, with no index skipped."""
        ...

    def is_factor(self, domain: IterDomain) -> bool:
        """Whether the extent of `domain` was chosen, as the factor of a split."""
        ...

    def enclose(self, *domains: IterDomain) -> None:
        """Marks `domains` as within the box."""
        ...

    def enclose_parts(self, merged: IterDomain, *domains: IterDomain) -> None:
        """Marks `domains` as within the box where `merged`, which runs through them in order, is."""
        ...

    def enclose_every(self, whole: IterDomain, outer: IterDomain, inner: IterDomain) -> bool:
        """Marks `whole`, of which only every n-th index is taken, where `outer` is in the box, `inner` is not, and engines
        can stride so; False where it has another form."""
        ...


class Views(Protocol):
    """The view of a tensor, from its own IterDomains down to those that boxes are cut from: propagated one transform at a
    time."""

    def divide(self, transform: Transform, whole: IterDomain, outer: IterDomain, inner: IterDomain) -> None:
        """Views `whole` as `outer` times `inner`. Raises Refused."""
        ...

    def join(self, outer: IterDomain, inner: IterDomain, merged: IterDomain) -> None:
        """Views both as one, `inner` fastest. Raises Refused."""
        ...

    def shift(self, before: IterDomain, left: Expr, right: Expr, after: IterDomain) -> None:
        """Views `before` with room for `left` before it, and for `right` after it. Raises Refused."""
        ...

    def refuse(self, domain: IterDomain, reason: str, helps: str) -> None:
        """Raises Refused: there is no such view of `domain`, for `reason`."""
        ...


class Transform(ABC):
    """An expression on IterDomains: `inputs` are nearer to the logical domain, `outputs` nearer to the leaves.

    `up` is used by code: the indices of the inputs from those of the outputs. `down` is its inverse on indices in bounds. A
    point of the outputs is a *hole* where `up` leaves the bounds of an input.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def inputs(self) -> tuple[IterDomain, ...]:
        """The IterDomains that it consumes."""

    @property
    @abstractmethod
    def outputs(self) -> tuple[IterDomain, ...]:
        """The IterDomains that it produces."""

    def respelled(self, domain: IterDomain) -> Self:
        """The same where the extent of `domain` is another expression of the same value. Transforms are dataclasses."""
        own = {name: getattr(self, name) for name in (field.name for field in fields(cast("Any", self)))}
        said = {name: domain for name, old in own.items() if isinstance(old, IterDomain) and old.sym == domain.sym}
        return replace(cast("Any", self), **said) if said else self

    @abstractmethod
    def up(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The inputs' indices from the outputs'. Total, also out of bounds."""

    @abstractmethod
    def down(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The outputs' indices from the inputs', which must be in bounds."""

    @abstractmethod
    def implications(self) -> tuple[Implication, ...]:
        """Implications between bounds of its IterDomains (the theorems of the docs on theory)."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Its name in pictures and messages: `Split(6)`."""

    @property
    def positive(self) -> tuple[Expr, ...]:
        """The expressions that must be positive for it to be valid; callers prove that, or have it checked."""
        return ()

    @property
    def factors(self) -> tuple[IterDomain, ...]:
        """Outputs whose extent is a parameter of the transform."""
        return ()

    # Every index once: `texpr.domain.coverage`.

    def keeps(self, known: Known) -> bool:
        """Whether it maps indices in bounds injectively to indices in bounds, known by its kind.

        Where that is not known, it is proved from `down` and `up`.
        """
        return False

    @property
    def undoes(self) -> bool:
        """Whether `up` inverts `down` at every index, in bounds or not: then `down` is injective, but may leave the bounds."""
        return False

    # Equal schedules: `texpr.domain.equivalence.decide`.

    @property
    def kind(self) -> tuple[object, ...]:
        """The transform without the names that it gives, for equality. By default it is equal to itself only."""
        return (self,)

    def terms(self, of: tuple[Term, ...]) -> tuple[Term, ...]:
        """The terms of the outputs, where the inputs are `of`."""
        return tuple(Other(self.kind, of, at, d.extent) for at, d in enumerate(self.outputs))

    @property
    def keeps_order(self) -> bool:
        """Whether the lexicographic order of the outputs' indices is that of the inputs'."""
        return False

    # Bounds: `texpr.tma.correctness`, `texpr.schedule.stage.views`.

    def holes(self, proofs: Proofs) -> Iterator[Bound]:
        """Bounds of inputs that may fail although those of the outputs hold."""
        yield from (side(domain) for domain in self.inputs for side in (low, high))

    def outside(self, known: Known) -> tuple[tuple[IterDomain, IterDomain], ...]:
        """Pairs of an input and an output: an index out of bounds of that output is out of bounds of that input."""
        return ()

    @property
    def fills(self) -> bool:
        """Whether no input is empty where no output is."""
        return False

    # Boxes of copies: `texpr.tma.boxing`.

    def enclosed(self, boxes: Boxes) -> None:
        """Propagates the box from outputs to inputs. By default inputs lie within it where all of the outputs do."""
        if boxes.whole(*self.outputs):
            boxes.enclose(*self.inputs)

    def viewed(self, views: Views) -> None:
        """Propagates the view from inputs to outputs. Raises Refused: by default always."""
        views.refuse(self.inputs[0], f"a {self.title} between the tensor and the box", "box the tensor itself")
