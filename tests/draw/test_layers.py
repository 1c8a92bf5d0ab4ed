"""Geometry: no boxes meet, no edge runs through a box, rows keep their order; over graphs at random."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from random import Random

import pytest

from texpr.draw.page.layers import Edge, Layered, Node, layered


def random_drawing(seed: int) -> tuple[list[Node], list[Edge], frozenset[int]]:
    """Nodes in layers, edges downwards over one or more layers, first and last layer pinned."""
    random = Random(seed)
    depth = random.randrange(1, 9)
    nodes = [
        Node(layer, random.uniform(5, 60), random.uniform(5, 160), random.uniform(10, 70))
        for layer in range(depth)
        for _ in range(random.randrange(1, 6))
    ]
    pairs = [(a, b) for a, b in product(range(len(nodes)), repeat=2) if nodes[a].layer < nodes[b].layer]
    chosen = random.sample(pairs, min(len(pairs), random.randrange(12)))
    edges = [Edge(a, b, (random.uniform(-4, 4), 5), (random.uniform(-4, 4), -5)) for a, b in chosen]
    return nodes, edges, frozenset((0, depth - 1))


def boxes(nodes: list[Node], placed: Layered) -> list[tuple[float, float, float, float]]:
    """Left, top, right, bottom of each node."""
    return [
        (x - node.left, y - node.height / 2, x + node.right, y + node.height / 2)
        for node, (x, y) in zip(nodes, placed.anchors, strict=True)
    ]


def way_points(placed: Layered, edge: int) -> Iterator[tuple[float, float]]:
    """Points along an edge as it is drawn: straight in a layer, a cubic curve with upright ends between two."""
    way = placed.ways[edge]
    for station in way:
        yield from ((station.x, station.top + (station.bottom - station.top) * t / 8) for t in range(9))
    for before, after in pairwise(way):
        for k in range(17):
            t = k / 16
            x = before.x + (after.x - before.x) * (3 * t * t - 2 * t * t * t)
            middle = (before.bottom + after.top) / 2
            s = 1 - t
            yield x, s**3 * before.bottom + 3 * (s * s * t + s * t * t) * middle + t**3 * after.top


@pytest.mark.parametrize("seed", range(150))
def test_nothing_meets(seed: int) -> None:
    nodes, edges, pinned = random_drawing(seed)
    placed = layered(nodes, edges, pinned)
    found = boxes(nodes, placed)
    for at, (left, top, right, bottom) in enumerate(found):
        assert left >= -1e-6 and top >= -1e-6 and right <= placed.width + 1e-6 and bottom <= placed.height + 1e-6
        for other in found[at + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    for at, edge in enumerate(edges):
        for x, y in way_points(placed, at):
            for node, (left, top, right, bottom) in enumerate(found):
                assert node in (edge.source, edge.target) or not (left < x < right and top < y < bottom)


@pytest.mark.parametrize("seed", range(30))
def test_pinned_rows_keep_their_order_and_layers_lie_below_each_other(seed: int) -> None:
    nodes, edges, pinned = random_drawing(seed)
    placed = layered(nodes, edges, pinned)
    for layer in pinned:
        row = [x for node, (x, _) in zip(nodes, placed.anchors, strict=True) if node.layer == layer]
        assert row == sorted(row)
    for (one, (_, y)), (other, (_, z)) in product(zip(nodes, placed.anchors, strict=True), repeat=2):
        assert (one.layer < other.layer) == (y < z)


def crossings(placed: Layered) -> int:
    """Pairs of edges between the same two layers that change sides; there are no longer edges here."""
    ends = [(way[0].bottom, way[0].x, way[-1].x) for way in placed.ways]
    return sum(a[0] == b[0] and a[1] < b[1] and a[2] > b[2] for a, b in product(ends, repeat=2))


def test_crossings_that_can_be_avoided_are() -> None:
    """Two parents, their children given in the wrong order: sorting the row of the children unties them."""
    nodes = [Node(0, 10, 10, 10), Node(0, 10, 10, 10), *(Node(1, 10, 10, 10) for _ in range(4)), Node(2, 10, 10, 10)]
    edges = [Edge(parent, child, (0, 5), (0, -5)) for parent, child in ((0, 3), (0, 5), (1, 2), (1, 4))]
    assert crossings(layered(nodes, edges, frozenset((0, 2)))) == 0
    assert crossings(layered(nodes, edges, frozenset((0, 1)))) > 0


def test_a_long_edge_is_straight_where_there_is_room() -> None:
    nodes = [Node(0, 10, 10, 10), Node(1, 30, 30, 10), Node(2, 30, 30, 10), Node(3, 10, 10, 10), Node(3, 10, 10, 10)]
    edges = [Edge(a, b, (0, 5), (0, -5)) for a, b in ((0, 1), (1, 2), (2, 3), (0, 4))]
    placed = layered(nodes, edges, frozenset((0, 3)))
    assert len({station.x for station in placed.ways[3][1:]}) == 1
    assert len({x for x, _ in placed.anchors[1:4]}) == 1


def test_nothing_is_drawn_of_nothing() -> None:
    assert layered([], []) == Layered((), (), 0.0, 0.0)
