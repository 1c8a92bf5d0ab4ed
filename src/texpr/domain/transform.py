"""What every transform of IterDomains offers. Each lives in a file of its own in `texpr.domain.transforms`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from texpr.affine.expr import Expr
from texpr.domain.iterdomain import Implication, IterDomain


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
