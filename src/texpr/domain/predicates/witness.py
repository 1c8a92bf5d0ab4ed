"""Points excluded by one comparison alone: each proves, without a solver, that the comparison is needed.

A few logical indices are mapped down to the leaves, at a few sizes. There every comparison holds; then one loop index is
changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.domain.graph import DomainGraph
from texpr.domain.trial import trial_sizes

_SIZES = (5040, 1001, 24, 7)
"""Large ones first, which leave room for holes of every split; one that most factors divide, one that few do."""

_MOST_SIZES = 4

_PLACES = (0, 64, 32, 63, 11, 50)
"""The tried indices of a logical IterDomain, in 64ths of its extent; each IterDomain starts at another entry."""


class Witnesses:
    """Valid points of the leaves of a graph, computed on demand."""

    __slots__ = ("_found", "_more")

    def __init__(self, graph: DomainGraph, known: Known):
        self._more = _valid(graph, known)
        self._found: list[tuple[dict[Sym, int], dict[Sym, int]]] = []

    def any(self) -> bool:
        """Whether a valid point is found."""
        return next(self._points(), None) is not None

    def needs(self, claim: Expr, others: Sequence[Expr]) -> bool:
        """Whether a point is found at which all of `others` are ≥ 0, and `claim` is not."""
        named = claim.syms()
        naming: dict[Sym, list[Expr]] = {}  # the others hold at every point, so those that do not mention the leaf still do
        for point, extents in self._points():
            for leaf, extent in extents.items():
                if leaf in named:
                    here = point[leaf]
                    moving = naming.setdefault(leaf, [each for each in others if leaf in each.syms()])
                    for value in {extent - 1, 0, min(here + 1, extent - 1), max(here - 1, 0)}:
                        moved = {**point, leaf: value}
                        if claim.evaluate(moved) < 0 and all(each.evaluate(moved) >= 0 for each in moving):
                            return True
        return False

    def _points(self) -> Iterator[tuple[dict[Sym, int], dict[Sym, int]]]:
        yield from self._found
        for each in self._more:
            self._found.append(each)
            yield each


def _valid(graph: DomainGraph, known: Known) -> Iterator[tuple[dict[Sym, int], dict[Sym, int]]]:
    """Points of the leaves, with sizes, and the leaves' extents there."""
    domains = graph.domains()
    names = {d.sym for d in domains}
    if any(d.extent.syms() & names for d in domains):
        return  # extents that vary with an index
    every = trial_sizes([d.extent for d in domains], [d.sym for d in domains], known, _SIZES)
    cases = [(sizes, {d.sym: d.extent.evaluate(sizes) for d in domains}) for sizes in islice(every, _MOST_SIZES)]
    below = [
        (made.sym, index)
        for transform in graph.transforms
        for made, index in zip(transform.outputs, transform.down(tuple([expr(d.sym) for d in transform.inputs])), strict=True)
    ]
    for at, (sizes, extents) in product(range(len(_PLACES)), cases):
        logical = {
            d.sym: min(extents[d.sym] * _PLACES[(at + k) % len(_PLACES)] // 64, extents[d.sym] - 1)
            for k, d in enumerate(graph.logical)
        }
        point = {**sizes, **logical}
        if all(index >= 0 for index in logical.values()) and _descend(below, point, extents):
            leaves = {leaf.sym: extents[leaf.sym] for leaf in graph.leaves}
            yield {**sizes, **{leaf: point[leaf] for leaf in leaves}}, leaves


def _descend(below: Sequence[tuple[Sym, Expr]], point: dict[Sym, int], extents: Mapping[Sym, int]) -> bool:
    """Adds the indices of all other IterDomains, each from those before it; False where one is out of bounds."""
    for made, value in below:
        index = point[made] = value.evaluate(point)
        if not 0 <= index < extents[made]:
            return False
    return True
