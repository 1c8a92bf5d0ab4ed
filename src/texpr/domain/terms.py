"""Leaves of a graph as terms over logical IterDomains: graphs with equal terms are equal schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, assert_never

from texpr.affine.expr import Expr
from texpr.domain.iterdomain import IterDomain
from texpr.support.record import Record, replace


class Logical(Record):
    """A logical IterDomain."""

    domain: IterDomain

    @property
    def extent(self) -> Expr:
        """The extent of the IterDomain."""
        return self.domain.extent


class Part(Record):
    """One output of a split of `of` by the inner factor `factor`: the quotient if `outer`, else the remainder."""

    of: Term
    factor: Expr
    outer: bool

    @property
    def extent(self) -> Expr:
        """The factor for the remainder, the ceiling of the quotient otherwise."""
        return -((-self.of.extent) // self.factor) if self.outer else self.factor


class Merged(Record):
    """The output of a merge."""

    first: Term
    second: Term

    @property
    def extent(self) -> Expr:
        """The product of both extents."""
        return self.first.extent * self.second.extent


class Other(Record):
    """Output number `at` of any other transform; `kind` is the transform without names."""

    kind: tuple[object, ...]
    of: tuple[Term, ...]
    at: int
    extent: Expr


Term: TypeAlias = Logical | Part | Merged | Other


def nodes(term: Term) -> Iterator[Term]:
    """`term` and its subterms."""
    yield term
    for part in _parts(term):
        yield from nodes(part)


def replaced(term: Term, change: Mapping[Term, Term]) -> Term:
    """`term` with each subterm that is a key of `change` replaced by its value."""
    if term in change:
        return change[term]
    match term:
        case Logical():
            return term
        case Part(of):
            return replace(term, of=replaced(of, change))
        case Merged(first, second):
            return Merged(replaced(first, change), replaced(second, change))
        case Other(_, of):
            return replace(term, of=tuple(replaced(each, change) for each in of))
        case _:
            assert_never(term)


def _parts(term: Term) -> tuple[Term, ...]:
    match term:
        case Logical():
            return ()
        case Part(of):
            return (of,)
        case Merged(first, second):
            return (first, second)
        case Other(_, of):
            return of
        case _:
            assert_never(term)
