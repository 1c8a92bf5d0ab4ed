"""Valid indices of the leaves: formulas over the symbols of the leaves and the sizes.

An index of the leaves is *valid* where the index of every IterDomain above, which follows by `up`, is in bounds; it is then
the place of exactly one item. All other indices of the leaves are holes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import Bound, high, low
from texpr.presburger.formula import Formula, Ge, between, conj
from texpr.presburger.linear import is_affine

NOTHING = Known({})
"""No knowledge of sizes, except that no extent is negative."""


def every_bound(graph: DomainGraph) -> tuple[Bound, ...]:
    """Both comparisons of every IterDomain."""
    return tuple(side(domain) for domain in graph.domains() for side in (low, high))


def guard(graph: DomainGraph, kept: Iterable[Bound] | None = None, indices: Mapping[Sym, Expr] | None = None) -> Formula:
    """Where the comparisons `kept` hold; by default all, which is where an index is valid.

    `indices`: of the compared IterDomains; by default those that follow from the leaves.
    """
    index = graph.indices() if indices is None else indices
    bounds = every_bound(graph) if kept is None else kept
    return conj(Ge(bound.margin(index[bound.domain.sym])) for bound in bounds)


def box(graph: DomainGraph) -> Formula:
    """Where each leaf is in its bounds: the iterations of the loops, or the elements of the allocation."""
    return conj(between(0, leaf.sym, leaf.extent) for leaf in graph.leaves)


def premises(graph: DomainGraph, known: Known) -> Formula:
    """The graph's own premises, that no extent is negative, and the affine part of what is known of sizes.

    A proof from these is sound; a point found under them must be checked by `admits`.
    """
    return conj(map(Ge, (*filter(is_affine, known.nonnegatives()), *_own(graph))))


def admits(known: Known, sizes: Mapping[Sym, int]) -> bool:
    """Whether all that is known holds at these sizes; facts about other symbols are ignored."""
    try:
        return all(each.evaluate(sizes) >= 0 for each in known.nonnegatives() if each.syms() <= sizes.keys())
    except ZeroDivisionError:
        return False


def facts(graph: DomainGraph, known: Known) -> tuple[Expr, ...]:
    """What is known, and the graph's premises, as expressions that are never negative."""
    return (*known.nonnegatives(), *_own(graph))


def _own(graph: DomainGraph) -> tuple[Expr, ...]:
    return (*graph.premises(), *(domain.extent for domain in graph.domains()))


def leaf_syms(graph: DomainGraph) -> tuple[Sym, ...]:
    """The symbols of the leaves, in order."""
    return tuple(leaf.sym for leaf in graph.leaves)


def sizes_of(*graphs: DomainGraph) -> tuple[Sym, ...]:
    """Every symbol of an index or an extent that is not an IterDomain's, by name."""
    own = {domain.sym for graph in graphs for domain in graph.domains()}
    found = {s for graph in graphs for d in graph.domains() for s in d.extent.syms()}
    found |= {s for graph in graphs for index in graph.indices().values() for s in index.syms()}
    return tuple(sorted(found - own, key=lambda s: s.name))


def product_of(extents: Iterable[Expr]) -> Expr:
    """The product; 1 of none."""
    total = expr(1)
    for extent in extents:
        total = total * extent
    return total
