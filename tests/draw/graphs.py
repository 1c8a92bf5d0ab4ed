"""Graphs at random for pictures, and readers of the SVG that is drawn of them."""

from __future__ import annotations

from random import Random
from xml.etree import ElementTree

from texpr.affine.expr import Sym
from texpr.domain.graph import DomainGraph
from texpr.domain.transforms.swizzle import Shift

SVG = "{http://www.w3.org/2000/svg}"


def random_graph(seed: int, transforms: int) -> DomainGraph:
    """A graph of that many transforms of all kinds, its leaves in some order."""
    random = Random(seed)
    graph = DomainGraph.of(("I0", random.randrange(1, 100)), ("I1", Sym("n")), ("I2", random.randrange(1, 100)))
    while len(graph.transforms) < transforms:
        at = len(graph.domains())
        names = [leaf.sym.name for leaf in graph.leaves]
        new = f"I{at}", f"I{at + 1}"
        first, *rest = random.sample(names, len(names))
        kind = random.choice(("split", "split", "merge", "resize", "swizzle"))
        if kind == "split" or not rest:
            graph = graph.split(first, random.randrange(1, 9), new)
        elif kind == "merge":
            graph = graph.merge(first, rest[0], new[0])
        elif kind == "resize":
            graph = graph.resize(first, random.randrange(3), random.randrange(3), new[0])
        else:
            graph = graph.swizzle(first, rest[0], Shift(), new)
        if random.random() < 0.2:
            graph = graph.reorder(*random.sample([d.sym.name for d in graph.leaves], len(graph.leaves)))
    return graph


def texts(svg: str) -> list[str]:
    """What is written in a picture, in order of the document."""
    return ["".join(found.itertext()) for found in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def classed(svg: str, kind: str) -> list[ElementTree.Element]:
    """The elements that have the class `kind`."""
    return [found for found in ElementTree.fromstring(svg).iter() if kind in found.get("class", "").split()]
