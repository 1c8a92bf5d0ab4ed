"""Graphs of IterDomains as layouts, and layouts as graphs: two notations for one map between indices.

    logical → loop         the leaves' indices are a coordinate, and its value, an arithmetic tuple, is the logical index
    logical → allocation   the logical index is a coordinate, and its value is the number of elements before the item

A split is a mode divided in two, a merge two modes numbered as one, a resize the base coordinate or the pitch. Graphs that
are no layout are refused: a swizzle, and a loop whose step moves two logical indices; so are layouts that are no graph: modes
that overlap or repeat.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

from texpr.affine.expr import expr
from texpr.affine.facts import Known
from texpr.domain.allocation import offset
from texpr.domain.graph import DomainGraph
from texpr.layout.algebra.quasi_affine import from_expressions
from texpr.layout.basis import Path
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, IntTree, minus, product, times
from texpr.layout.layout import Layout, Mode
from texpr.layout.proof import NOTHING, Prover
from texpr.layout.tensor import CoordinateTensor

_Placed: TypeAlias = tuple[int, Mode]
"""A leaf of a layout and its number."""


def coordinates_of(graph: DomainGraph, known: Known = NOTHING) -> CoordinateTensor:
    """From the leaves' indices, one mode a leaf, to the logical index. Raises LayoutError where that is no layout.

    At a hole the value is out of bounds of the logical domain, or an item that is visited elsewhere, as in the graph itself.
    """
    indices = graph.indices()
    axes = [(leaf.sym, leaf.extent) for leaf in graph.leaves]
    base, layout = from_expressions(tuple(indices[d.sym] for d in graph.logical), axes, known)
    return CoordinateTensor(base, layout if len(axes) != 1 else Layout.of(layout))


def memory_of(graph: DomainGraph, known: Known = NOTHING) -> tuple[IntTree, Layout]:
    """`(base, layout)` of an allocation: the item at a logical index, one mode an IterDomain, has the offset base +
    layout(index).

    Raises LayoutError where that is no layout.
    """
    axes = [(d.sym, d.extent) for d in graph.logical]
    base, layout = from_expressions(offset(graph, [sym for sym, _ in axes]), axes, known)
    return base, layout if len(axes) != 1 else Layout.of(layout)


def graph_of_coordinates(layout: Layout, known: Known = NOTHING) -> DomainGraph:
    """The graph whose leaves are those of a layout with basis strides, in order, and whose logical IterDomains are its entries.

    Logical IterDomains are called `x0`, `x1`, …, and the parts split off them `y` and the number of the leaf. Raises
    LayoutError where the modes of an entry do not enumerate it from 0, each index once, and ValueError for a size with such a
    name.
    """
    prover = Prover(known, layout)
    if any(mode.stride == 0 for mode in layout.flat):
        raise LayoutError("graph", f"a mode of {layout} has stride 0: a loop that stays at its index is no part of a graph")
    groups: dict[Path, list[_Placed]] = {}
    for at, mode in enumerate(layout.flat):
        groups.setdefault(mode.path, []).append((at, mode))
    chains = [_counted(layout, groups[path], prover) for path in sorted(groups)]
    graph = DomainGraph.of(*((f"x{k}", expr(product(tuple(m.size for _, m in chain)))) for k, chain in enumerate(chains)))
    leaves: dict[int, str] = {}
    for k, chain in enumerate(chains):
        rest = f"x{k}"
        for (at, mode), (above, _) in pairwise(chain):
            leaves[at], outer = f"y{at}", f"y{above}" if above == chain[-1][0] else f"{rest}_o"
            graph = graph.split(rest, mode.size, (outer, leaves[at]))
            rest = outer
        leaves[chain[-1][0]] = rest
    return graph.reorder(*(leaves[at] for at in range(len(layout.flat))))


def _counted(layout: Layout, modes: list[_Placed], prover: Prover) -> list[_Placed]:
    """The modes of an entry, the fastest first; each stride is the number of indices covered by those before it."""
    left, found = list(modes), list[_Placed]()
    reached: Int = 1
    while left:
        at = next((k for k, (_, mode) in enumerate(left) if mode.size == 1 or prover.equal(mode.step, reached)), None)
        if at is None:
            raise LayoutError(
                "graph",
                f"no mode of {layout} counts on from {reached} where {left[0][1]} is, or none is proved to",
                help="a graph visits each index of an entry once",
            )
        found.append(left.pop(at))
        reached = times(reached, found[-1][1].size)
    return found


def graph_of_memory(layout: Layout, known: Known = NOTHING) -> DomainGraph:
    """The graph logical → allocation in which the item at a natural coordinate lies at layout(coordinate).

    Logical IterDomains are the layout's leaves, `x0`, `x1`, …. Those of the allocation are ordered by stride, the greatest
    first, and one with a gap up to the stride of the next is padded by a resize, to `x0_r`. Raises LayoutError where modes
    overlap or repeat, or the least stride is not 1, and ValueError for a size with such a name.
    """
    if not layout.is_integral:
        raise LayoutError("graph", f"{layout} gives coordinates, not where items lie")
    prover = Prover(known, layout)
    graph = DomainGraph.of(*((f"x{at}", expr(mode.size)) for at, mode in enumerate(layout.flat)))
    ordered = _by_stride(layout, prover)
    order = [f"x{at}" for at, _ in ordered]
    for place, ((_, mode), (_, above)) in enumerate(pairwise(ordered)):
        room = prover.quotient(above.step, mode.step)
        if not prover.equal(room, mode.size):
            graph = graph.resize(order[place], 0, minus(room, mode.size))
            order[place] += "_r"
    single = [f"x{at}" for at, mode in enumerate(layout.flat) if mode.size == 1]
    return graph.reorder(*single, *reversed(order))


def _by_stride(layout: Layout, prover: Prover) -> list[_Placed]:
    """The leaves of size other than 1, the least stride first; each stride covers the leaf before it."""
    left = [(at, mode) for at, mode in enumerate(layout.flat) if mode.size != 1]
    found: list[_Placed] = []
    while left:
        at = next((k for k, (_, mode) in enumerate(left) if _steps_over(mode, found, left, prover)), None)
        if at is None:
            raise LayoutError(
                "graph",
                f"no mode of {layout} steps over whole modes, from stride 1 on, where {left[0][1]} is, or none is proved to",
                help="each stride must be a multiple of the one before it, and at least that times its size",
            )
        found.append(left.pop(at))
    return found


def _steps_over(mode: Mode, found: list[_Placed], left: list[_Placed], prover: Prover) -> bool:
    """Whether `mode` comes next: its stride covers the last one found, and the strides of all others are multiples of it."""
    if not found:
        return prover.equal(mode.step, 1)
    _, last = found[-1]
    return (
        prover.divides(last.step, mode.step)
        and prover.at_most(times(last.step, last.size), mode.step)
        and all(prover.divides(mode.step, other.step) for _, other in left)
    )
