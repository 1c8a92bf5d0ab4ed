"""The tile in shared memory: whether the allocation has the order in which the engine writes it, under which swizzle, with
which holes.

The engine writes a tile densely, dimension 0 fastest; with a swizzle, chunks of 16 bytes are permuted by address. The
allocation is given by the bulk leaves, the last one fastest. Both are enumerated: a box has at most some thousand elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from texpr.affine.expr import ONE, ZERO, Expr, expr
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain
from texpr.domain.visits import Ints, TooMany, visits
from texpr.support.lazy import Module
from texpr.support.record import Record
from texpr.tma.boxing import Boxed, Refused
from texpr.tma.swizzle import Swizzle

if TYPE_CHECKING:
    import numpy as np
else:  # few programs have such copies
    np = Module("numpy")


class Tile(Record):
    """`order`: the IterDomain of the box in each part, fastest first in memory. `holes`: elements never written.

    `place`: the offset of the tile, in elements, over the allocated leaves. Its graph goes from `order` to the leaves.
    """

    order: tuple[IterDomain, ...]
    graph: DomainGraph
    swizzle: Swizzle
    holes: int
    place: Expr


def tile(
    graph: DomainGraph,
    roots: Sequence[IterDomain],
    bulk: Sequence[IterDomain],
    outer: Sequence[IterDomain],
    boxes: Boxed,
    size: int,
) -> Tile:
    """The tile of `roots`, in elements of `size` bytes; `outer` are the leaves of the allocation that loops run.

    Raises Refused.
    """
    tops = tuple(boxes.strided[root].outer if root in boxes.strided else root for root in roots)
    if unknown := next((d for d in (*tops, *bulk) if not d.extent.is_constant), None):
        raise Refused(unknown, "the extent of a box is no number", "fix it when building")
    within = _below(graph, tops, bulk)
    try:
        found = visits(within)
    except TooMany:
        raise Refused(bulk[0], "the tile is larger than any shared memory", "split the box") from None
    if found.visited.sum() != prod(top.extent.constant for top in tops):
        raise Refused(tops[0], "the allocation has no place for some of the tile", "cut the tensor before it is boxed")
    place = np.arange(prod(found.shape), dtype=np.int64)[found.visited]
    index = {domain: at[found.visited] for domain, at in zip(tops, found.logical, strict=True)}
    order = sorted((d for d in tops if d.extent.constant > 1), key=lambda domain: _step(domain, index, place))
    order += [d for d in tops if d.extent.constant <= 1]
    swizzle = _swizzle(order, index, place, size)
    if swizzle is None:
        reason = "the tile does not lie in shared memory as the engine writes it"
        helps = "order the bulk leaves as the dimensions of the box, the innermost last, behind all others"
        raise Refused(tops[0] if tops else None, reason, helps)
    total = prod(leaf.extent.constant for leaf in bulk) * size
    others = [leaf for leaf in outer if leaf.extent is not ONE]
    if others and swizzle is not Swizzle.NONE and total % swizzle.period:
        reason = f"tiles of {total} bytes behind each other, where the swizzle repeats after {swizzle.period}"
        raise Refused(others[-1], reason, "make the tile a multiple of that, or allocate one at a time")
    return Tile(tuple(order), within, swizzle, int((~found.visited).sum()), _place(outer, bulk))


def _below(graph: DomainGraph, tops: tuple[IterDomain, ...], bulk: Sequence[IterDomain]) -> DomainGraph:
    reached = set(tops)
    kept = [t for t in graph.transforms if all(d in reached for d in t.inputs) and not reached.update(t.outputs)]
    return DomainGraph(tops, tuple(kept), tuple(bulk))


def _step(domain: IterDomain, index: dict[IterDomain, Ints], place: Ints) -> int:
    """The distance in memory of the first two elements along a dimension, which no swizzle changes in the first row."""
    others = np.logical_and.reduce([at == 0 for d, at in index.items() if d != domain] or [np.ones(len(place), np.bool_)])
    return int(place[others & (index[domain] == 1)].min())


def _swizzle(order: Sequence[IterDomain], index: dict[IterDomain, Ints], place: Ints, size: int) -> Swizzle | None:
    """The swizzle under which the engine writes each element to its place in the allocation."""
    row = order[0].extent.constant if order else 1
    number, weight = np.zeros(len(place), np.int64), 1
    for domain in order[1:]:
        number, weight = number + index[domain] * weight, weight * domain.extent.constant
    inner = index[order[0]] if order else number
    for swizzle in Swizzle:
        whole = swizzle is Swizzle.NONE or row * size == swizzle.span
        if whole and np.array_equal(swizzle((number * row + inner) * size), place * size):
            return swizzle
    return None


def _place(outer: Sequence[IterDomain], bulk: Sequence[IterDomain]) -> Expr:
    total, weight = ZERO, ONE
    for leaf in bulk:
        weight = weight * leaf.extent
    for leaf in reversed(outer):
        total, weight = total + expr(leaf.sym) * weight, weight * leaf.extent
    return total
