"""IterDomain graphs of 40 transforms, or as many as one likes: tiled as schedules tile, and mixed as no schedule would."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import IntoExpr
from texpr.domain import DomainGraph
from texpr.domain.transforms.swizzle import Xor

TRANSFORMS = 40


def tiled(sizes: Sequence[IntoExpr]) -> DomainGraph:
    """Each IterDomain cut at four levels, tiles of a level merged, cut for threads and vectors, and swizzled."""
    graph = DomainGraph.of(*((f"d{k}", size) for k, size in enumerate(sizes)))
    for k in range(len(sizes)):
        for level, factor in enumerate((128, 32, 8, 4)):
            graph = graph.split(f"d{k}" + "_i" * level, factor)
    for level in range(1, 5):
        for k in range(1, len(sizes)):
            names = [f"d{each}" + "_i" * (level - 1) + "_o" for each in (0, k)]
            graph = graph.merge("m" * (k - 1) + f"l{level}" if k > 1 else names[0], names[1], "m" * k + f"l{level}")
    last = "m" * (len(sizes) - 1)
    for level in range(1, 5):
        graph = graph.split(f"{last}l{level}", 4, (f"o{level}", f"i{level}"))
        graph = graph.swizzle(f"o{level}", f"i{level}", Xor(2), (f"p{level}", f"q{level}"))
        graph = graph.split(f"p{level}", 3, (f"r{level}", f"s{level}"))
    while len(graph.transforms) < TRANSFORMS:
        last_leaf = graph.leaves[-1].sym.name
        graph = graph.split(last_leaf, 2, (f"x{len(graph.transforms)}", f"y{len(graph.transforms)}"))
    return graph


def mixed(sizes: Sequence[IntoExpr], transforms: int = TRANSFORMS) -> DomainGraph:
    """Whatever leaf is next is cut by what does not divide it, merged with its neighbour, or resized."""
    graph = DomainGraph.of(*((f"d{k}", size) for k, size in enumerate(sizes)))
    for k in range(transforms):
        leaf, after = (graph.leaves[(k + next_) % len(graph.leaves)] for next_ in (0, 1))
        name = leaf.sym.name
        if k % 2 == 0:
            graph = graph.split(name, (4, 3, 8, 5, 2, 7)[k % 6], (f"o{k}", f"i{k}"))
        elif k % 4 == 1:
            graph = graph.merge(name, after.sym.name, f"m{k}")
        else:
            small = leaf.extent.is_constant and leaf.extent.constant <= 3
            graph = graph.resize(name, *((1, 2) if small else (k % 3 - 1, k % 5 - 1)), f"r{k}")
    return graph
