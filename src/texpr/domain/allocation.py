"""What a graph logical → allocation needs in memory: its size, its holes, and the place of an item.

A *hole* is an index of the allocation at which no item lies: `down` takes no logical index to it. Equivalently, `up` takes it
out of bounds of some IterDomain (docs/theory/correctness.md, "Holes"). With holes, memory is *over-allocated*: the 6 items of
`T[I0{6}]` laid out as (2, 4) take 8 elements, and (1, 2), (1, 3) are holes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from texpr.affine.expr import ZERO, Expr, IntoExpr, Sym
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.domain.coverage import coverage
from texpr.domain.graph import DomainGraph
from texpr.domain.validity import NOTHING, admits, box, guard, leaf_syms, premises, product_of
from texpr.domain.visits import Bools, Sizes, TooMany, small_sizes, visits
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import NotAffine
from texpr.support.record import Record


class Hole(Record):
    """A hole at these sizes, one index a leaf."""

    index: tuple[int, ...]
    sizes: Mapping[Sym, int]

    def __str__(self) -> str:
        at = ", ".join(map(str, self.index))
        return f"({at})" + "".join(f", {name} = {value}" for name, value in self.sizes.items())


def size(graph: DomainGraph) -> Expr:
    """How many elements are allocated: the product of the extents of the leaves."""
    return product_of(leaf.extent for leaf in graph.leaves)


def items(graph: DomainGraph) -> Expr:
    """How many items there are: the product of the extents of the logical IterDomains."""
    return product_of(domain.extent for domain in graph.logical)


def place(graph: DomainGraph, index: Sequence[IntoExpr]) -> tuple[Expr, ...]:
    """The index of the allocation at which the item `index`, which must be in bounds, lies."""
    below = graph.below({d.sym: i for d, i in zip(graph.logical, index, strict=True)})
    return tuple(below[leaf.sym] for leaf in graph.leaves)


def offset(graph: DomainGraph, index: Sequence[IntoExpr]) -> Expr:
    """The offset of the item `index` in memory, in elements."""
    total = ZERO
    for leaf, at in zip(graph.leaves, place(graph, index), strict=True):
        total = total * leaf.extent + at
    return total


def holes(graph: DomainGraph, known: Known = NOTHING) -> Set:
    """The holes as a set over the leaves; the sizes are parameters, constrained by the affine part of what is known.

    Raises NotAffine where an inner extent is not a constant, Undecided.
    """
    leaves = leaf_syms(graph)
    return Set.of(leaves, box(graph)).where(premises(graph, known)).subtract(Set.of(leaves, guard(graph)))


def hole_mask(graph: DomainGraph, sizes: Sizes | None = None) -> Bools:
    """True at holes; one axis a leaf. Raises TooMany."""
    found = visits(graph, sizes)
    return ~found.visited.reshape(found.shape)


def first_hole(graph: DomainGraph, known: Known = NOTHING) -> Hole | None:
    """A hole at some sizes, or None where it is proved that no sizes give one. Raises Undecided."""
    leaves = leaf_syms(graph)
    try:
        point = holes(graph, known).sample()
    except (NotAffine, Undecided):
        return _first_hole_without_isl(graph, known)
    if point is None:
        return None
    hole = Hole(tuple(point[leaf] for leaf in leaves), {s: v for s, v in point.items() if s not in leaves})
    return hole if admits(known, hole.sizes) else _first_hole_without_isl(graph, known)


def is_over_allocated(graph: DomainGraph, known: Known = NOTHING) -> bool:
    """Whether some sizes give a hole. Raises Undecided."""
    return first_hole(graph, known) is not None


def _first_hole_without_isl(graph: DomainGraph, known: Known) -> Hole | None:
    """By counting: where each item has exactly one place, there are size − items holes."""
    if Simplifier(known)(size(graph) - items(graph)) is ZERO and coverage(graph, known).each_once:
        return None
    for sizes in small_sizes(known, graph):
        try:
            mask = hole_mask(graph, sizes)
        except TooMany:
            continue
        if mask.any():
            first = int(mask.reshape(-1).argmax())
            return Hole(_unravel(first, mask.shape), sizes)
    raise Undecided("whether the allocation has holes")


def _unravel(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    found: list[int] = []
    for extent in reversed(shape):
        position, rest = divmod(position, extent)
        found.append(rest)
    return tuple(reversed(found))
