"""Two schedules compared by theorems, for sizes that isl cannot handle: products of them, and symbolic factors.

    Merge and Split     Split(Merge(X, Y), n) is (Merge(X, O), I) for O, I = Split(Y, n), where n divides |Y|, or |X| ≤ 1
    Order kept          splits, merges of neighbours and resizes leave the order of the items as it was
    Every item once     where `coverage` proves that of both schedules, they visit the same items

A graph is read as one term a leaf, over logical IterDomains. Terms are rewritten by the first theorem, left to right, to a
normal form; equal normal forms are equal schedules. Statements and proofs: docs/theory/equivalence.md.
"""

from __future__ import annotations

from texpr.affine.expr import Expr
from texpr.affine.facts import Fact, Known
from texpr.domain.context import Context
from texpr.domain.coverage import coverage
from texpr.domain.graph import DomainGraph
from texpr.domain.iteration import Iteration, Notion
from texpr.domain.iterdomain import IterDomain
from texpr.domain.terms import Logical, Merged, Part, Term, nodes, replaced
from texpr.domain.validity import facts


def same_by_rule(first: Iteration, second: Iteration, by: Notion, known: Known) -> str | None:
    """The theorem that proves the schedules equal, or None. Both must be guarded by all of their comparisons."""
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
    """Merge and Split as a rewriting rule: Merged(X, outer of Y by n) → outer of Merged(X, Y) by n, and its inner with it."""

    def __init__(self, known: Known):
        self._known = known

    def normal(self, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """The normal form of the leaves' terms."""
        while (change := self._next(terms)) is not None:
            terms = tuple(replaced(term, change) for term in terms)
        return terms

    def _next(self, terms: tuple[Term, ...]) -> dict[Term, Term] | None:
        for term in terms:
            for node in nodes(term):
                match node:
                    case Merged(first, Part(of, factor, True)) if merge_and_split_commute(
                        first.extent, of.extent, factor, self._known
                    ):
                        whole = Merged(first, of)
                        return {node: Part(whole, factor, True), Part(of, factor, False): Part(whole, factor, False)}
                    case _:
                        pass
        return None


def _terms(graph: DomainGraph) -> tuple[Term, ...]:
    """The term of each leaf, in order."""
    found: dict[IterDomain, Term] = {d: Logical(d) for d in graph.logical}
    for transform in graph.transforms:
        found.update(zip(transform.outputs, transform.terms(tuple(found[d] for d in transform.inputs)), strict=True))
    return tuple(found[leaf] for leaf in graph.leaves)


def _keeps_order(graph: DomainGraph) -> bool:
    """Whether each transform preserves the order of neighbours, and the leaves are in the order in which the transforms gave
    them."""
    order = list(graph.logical)
    for transform in graph.transforms:
        if not transform.keeps_order:
            return False
        at = order.index(transform.inputs[0])
        if tuple(order[at : at + len(transform.inputs)]) != transform.inputs:
            return False
        order[at : at + len(transform.inputs)] = transform.outputs
    return tuple(order) == graph.leaves
