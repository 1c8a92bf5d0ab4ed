"""Two schedules compared by theorems, for sizes that isl cannot speak of: products of them, and symbolic factors.

    Merge and Split     Split(Merge(X, Y), n) is (Merge(X, O), I) for O, I = Split(Y, n), where n divides |Y|, or |X| ≤ 1
    Order kept          splits, merges of neighbours and resizes leave the order of the items as it was
    Every item once     where `coverage` proves that of both schedules, they visit the same items

A graph is read as one term a leaf, over logical IterDomains. Terms are rewritten by the first theorem, left to right, until it
no longer applies; equal terms then are equal schedules. Statements and proofs: docs/theory/equivalence.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, assert_never

from texpr.affine.expr import Expr
from texpr.affine.facts import Fact, Known
from texpr.domain.context import Context
from texpr.domain.coverage import coverage
from texpr.domain.graph import DomainGraph
from texpr.domain.iteration import Iteration, Notion
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transform import Transform
from texpr.domain.transforms.merge import Merge
from texpr.domain.transforms.resize import Resize
from texpr.domain.transforms.split import Split
from texpr.domain.transforms.swizzle import Swizzle
from texpr.domain.validity import facts
from texpr.support.record import Record, replace


class _Logical(Record):
    """A logical IterDomain."""

    domain: IterDomain

    @property
    def extent(self) -> Expr:
        return self.domain.extent


class _Part(Record):
    """One output of a split of `of` by the inner factor `factor`, which `outer` says."""

    of: Term
    factor: Expr
    outer: bool

    @property
    def extent(self) -> Expr:
        return -((-self.of.extent) // self.factor) if self.outer else self.factor


class _Merged(Record):
    """The output of a merge."""

    first: Term
    second: Term

    @property
    def extent(self) -> Expr:
        return self.first.extent * self.second.extent


class _Other(Record):
    """Output number `at` of any other transform; `how` is the transform without its names."""

    how: tuple[object, ...]
    of: tuple[Term, ...]
    at: int
    extent: Expr


Term: TypeAlias = _Logical | _Part | _Merged | _Other


def same_by_rule(first: Iteration, second: Iteration, by: Notion, known: Known) -> str | None:
    """The theorem by which the schedules are the same, or None. Both must be guarded by all of their comparisons."""
    if first.kept is not None or second.kept is not None:
        return None
    told = known.also(Fact(0, each, None) for graph in (first.graph, second.graph) for each in facts(graph, known))
    rule = _Rule(told)
    if rule.normal(_terms(first.graph)) == rule.normal(_terms(second.graph)):
        return "Merge and Split"
    if by is Notion.POSITION or not all(coverage(each.graph, known).each_once for each in (first, second)):
        return None
    if by is Notion.ORDER:
        return "Order kept" if _keeps_order(first.graph) and _keeps_order(second.graph) else None
    return "Every item once"


def merge_and_split_commute(outer: Expr, inner: Expr, factor: Expr, known: Known) -> bool:
    """Whether the premise of "Merge and Split" is proved: the factor divides the inner extent, or the outer is at most 1."""
    nowhere = Context(DomainGraph((), (), ()), known)
    return nowhere.divides(factor, inner) or nowhere.known.nonnegative(1 - outer)


class _Rule:
    """Merge and Split, as a rewriting: Merged(X, outer of Y by n) → outer of Merged(X, Y) by n, and its inner with it."""

    def __init__(self, known: Known):
        self._known = known

    def normal(self, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """The terms of all leaves after as many rewritings as there are."""
        while (change := self._next(terms)) is not None:
            terms = tuple(_replaced(term, change) for term in terms)
        return terms

    def _next(self, terms: tuple[Term, ...]) -> dict[Term, Term] | None:
        for term in terms:
            for node in _nodes(term):
                match node:
                    case _Merged(first, _Part(of, factor, True)) if merge_and_split_commute(
                        first.extent, of.extent, factor, self._known
                    ):
                        whole = _Merged(first, of)
                        return {node: _Part(whole, factor, True), _Part(of, factor, False): _Part(whole, factor, False)}
                    case _:
                        pass
        return None


def _nodes(term: Term) -> Iterator[Term]:
    yield term
    for part in _parts(term):
        yield from _nodes(part)


def _parts(term: Term) -> tuple[Term, ...]:
    match term:
        case _Logical():
            return ()
        case _Part(of):
            return (of,)
        case _Merged(first, second):
            return (first, second)
        case _Other(_, of):
            return of
        case _:
            assert_never(term)


def _replaced(term: Term, change: Mapping[Term, Term]) -> Term:
    if term in change:
        return change[term]
    match term:
        case _Logical():
            return term
        case _Part(of):
            return replace(term, of=_replaced(of, change))
        case _Merged(first, second):
            return _Merged(_replaced(first, change), _replaced(second, change))
        case _Other(_, of):
            return replace(term, of=tuple(_replaced(each, change) for each in of))
        case _:
            assert_never(term)


def _terms(graph: DomainGraph) -> tuple[Term, ...]:
    """What each leaf is, in order."""
    found: dict[IterDomain, Term] = {d: _Logical(d) for d in graph.logical}
    for transform in graph.transforms:
        of = tuple(found[d] for d in transform.inputs)
        match transform:
            case Split(_, outer, inner) if inner.extent in transform.factors:
                found[outer], found[inner] = (_Part(of[0], inner.extent, side) for side in (True, False))
            case Merge():
                found[transform.output] = _Merged(*of)
            case _:
                how = _how(transform)
                found.update({d: _Other(how, of, at, d.extent) for at, d in enumerate(transform.outputs)})
    return tuple(found[leaf] for leaf in graph.leaves)


def _how(transform: Transform) -> tuple[object, ...]:
    """The transform without the names that it gives; one of an unknown kind is equal to itself only."""
    match transform:
        case Split(_, outer, inner):
            return (Split, outer.extent, inner.extent)
        case Resize(_, left, right):
            return (Resize, left, right)
        case Swizzle():
            return (Swizzle, transform.permutation)
        case _:
            return (transform,)


def _keeps_order(graph: DomainGraph) -> bool:
    """Whether only neighbours are merged, nothing is swizzled, and the leaves stand as the transforms made them."""
    order = list(graph.logical)
    for transform in graph.transforms:
        if not isinstance(transform, Split | Merge | Resize):
            return False
        at = order.index(transform.inputs[0])
        if tuple(order[at : at + len(transform.inputs)]) != transform.inputs:
            return False
        order[at : at + len(transform.inputs)] = transform.outputs
    return tuple(order) == graph.leaves
