"""Graphs as layouts and layouts as graphs: one map, as isl sees it and point by point."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from math import prod
from random import Random

import pytest
from tests.domain.generate import recipe
from tests.layout.oracle import layouts, leaves, numbers, random_layout, values

from texpr.affine.expr import Sym, expr, sym
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.allocation import offset
from texpr.domain.transforms.swizzle import Xor
from texpr.layout import E, Layout, LayoutError
from texpr.layout.algebra.quasi_affine import as_map
from texpr.layout.inttuple import flatten, plus
from texpr.layout.modes import flat
from texpr.layout.text import parse_layout
from texpr.presburger.formula import between, conj
from texpr.presburger.isl.maps import Map
from texpr.presburger.isl.sets import Set
from texpr.tma import bridge
from texpr.tma.bridge import coordinates_of, graph_of_coordinates, graph_of_memory, memory_of

P = parse_layout


def loops(graph: DomainGraph) -> Map:
    """{ leaves → logical index }, where the leaves are in bounds."""
    names = [leaf.sym for leaf in graph.leaves]
    inside = Set.of(names, conj(between(0, leaf.sym, leaf.extent) for leaf in graph.leaves))
    indices = graph.indices()
    outs = [Sym(f"value {k}") for k in range(len(graph.logical))]
    return Map.function(names, outs, [indices[d.sym] for d in graph.logical], inside)


def memory(graph: DomainGraph) -> Map:
    """{ logical index → elements before it }, where the index is in bounds."""
    names = [d.sym for d in graph.logical]
    inside = Set.of(names, conj(between(0, d.sym, d.extent) for d in graph.logical))
    return Map.function(names, [Sym("value 0")], [offset(graph, names)], inside)


def tiles() -> DomainGraph:
    graph = DomainGraph.of(("x", 24), ("y", 16)).split("x", 4, ("xo", "xi")).split("y", 8, ("yo", "yi"))
    return graph.split("xo", 3, ("xa", "xb")).reorder("xi", "yi", "xb", "xa", "yo")


def test_tiles_of_a_matrix() -> None:
    found = coordinates_of(tiles())
    assert (found.base, str(found.layout)) == ((0, 0), "(4,8,3,2,2):(1@0,1@1,4@0,12@0,8@1)")
    names = [leaf.sym for leaf in tiles().leaves]
    assert as_map(found.layout, names).is_equal(loops(tiles()))


def test_a_merge_counts_two_modes_as_one() -> None:
    graph = DomainGraph.of(("x", 6), ("y", 4)).merge("x", "y", "z").split("z", 8, ("o", "i"))
    found = coordinates_of(graph)
    assert str(found.layout) == "(3,(4,2)):(2@0,(1@1,1@0))"
    for o, i in product(range(3), range(8)):
        assert found((o, i)) == ((8 * o + i) // 4, i % 4)


def test_a_resize_is_the_base() -> None:
    found = coordinates_of(DomainGraph.of(("x", 10)).resize("x", 2, 4).split("x_r", 4))
    assert (found.base, str(found.layout)) == ((-2,), "(4,4):(4@0,1@0)")


def test_a_swizzle_is_no_layout() -> None:
    graph = DomainGraph.of(("x", 8), ("y", 8)).swizzle("x", "y", Xor(3))
    with pytest.raises(LayoutError, match="not shown to be linear"):
        coordinates_of(graph)


def test_random_graphs_item_by_item() -> None:
    """Each item, followed down by hand, is where the layout says, or the graph is refused."""
    answered = 0
    for seed in range(400):
        made = recipe(seed)
        graph = made.graph()
        try:
            found = coordinates_of(graph)
        except LayoutError:
            continue
        answered += 1
        for sizes in made.sizes():
            given = {Sym(name): value for name, value in sizes.items()}
            for at in made.walk(sizes):
                value = flatten(found(tuple(at[leaf.sym.name] for leaf in graph.leaves)))
                assert [expr(v).evaluate(given) for v in value] == [at[d.sym.name] for d in graph.logical], seed
    assert answered > 40


def test_every_layout_that_counts_through_is_a_graph() -> None:
    """Cut two sizes in pieces, permute the pieces: isl finds graph and layout equal, and the way back gives the layout."""
    answered = 0
    for (a, b), (c, d) in product(product((2, 3), (1, 2, 4)), product((2, 5), (3, 1))):
        modes = ((a, E(0)), (b, E(0) * a), (c, E(1)), (d, E(1) * c))
        for order in permutations(modes):
            layout = Layout(tuple(size for size, _ in order), tuple(step for _, step in order))
            graph = graph_of_coordinates(layout)
            answered += 1
            assert loops(graph).is_equal(as_map(layout, [leaf.sym for leaf in graph.leaves]))
            assert [leaf.extent.constant for leaf in graph.leaves] == leaves(layout.shape)
            assert values(coordinates_of(graph).layout) == values(layout)
    assert answered == 24 * 24


def test_every_memory_layout_is_a_graph_or_refused() -> None:
    """Answered exactly where strides, in some order from 1 on, step over whole modes."""
    answered = 0
    for layout in layouts(12, 3, (0, 1, 2, 3, 4, 6), least=2):
        steps = sorted(zip(leaves(layout.stride), leaves(layout.shape), strict=True))
        nested = all(b % a == 0 and a * s <= b for (a, s), (b, _) in pairwise(steps) if a)
        fits = steps[0][0] == 1 and nested
        try:
            graph = graph_of_memory(layout)
        except LayoutError:
            assert not fits, layout
            continue
        answered += 1
        assert fits, layout
        names = [d.sym for d in graph.logical]
        found = [offset(graph, point).constant for point in product(*(range(size) for size in leaves(layout.shape)))]
        rowwise = Layout(tuple(reversed(leaves(layout.shape))), tuple(reversed(leaves(layout.stride))))
        assert found == numbers(rowwise)
        assert as_map(layout, names).is_equal(memory(graph))
        base, back = memory_of(graph)
        assert base == 0 and values(back) == values(layout)
    assert answered > 100


def test_random_memory_layouts() -> None:
    answered = 0
    for seed in range(300):
        layout = random_layout(Random(seed), 64, (1, 2, 4, 8))
        try:
            graph = graph_of_memory(layout)
        except LayoutError:
            continue
        answered += 1
        assert prod(leaf.extent.constant for leaf in graph.leaves) >= max(numbers(layout)) + 1
        assert as_map(flat(layout), [d.sym for d in graph.logical]).is_equal(memory(graph))
    assert answered > 60


def test_memory_of_graphs() -> None:
    """Splits and merges of allocations, written as layouts."""
    graph = DomainGraph.of(("x", 8), ("y", 6)).split("x", 4).resize("y", 1, 1).reorder("x_i", "y_r", "x_o")
    base, layout = memory_of(graph)
    assert (base, str(layout)) == (2, "((4,2),6):((16,1),2)")
    for x, y in product(range(8), range(6)):
        assert plus(2, layout.offset((x, y))) == offset(graph, (x, y)).constant
    assert memory_of(DomainGraph.of(("x", 6)).split("x", 4)) == (0, P("(6,):(1,)"))


def test_symbolic_graphs() -> None:
    n, m, p = sym("n"), sym("m"), sym("p")
    known = Known({}, [multiple_of(n, 8), Fact(0, p - n, None), Fact(1, n, None)])
    graph = DomainGraph.of(("x", n), ("y", m)).split("x", 8).reorder("x_i", "y", "x_o")
    found = coordinates_of(graph, known)
    assert str(found.layout) == "(8,m,(n / 8)):(1@0,1@1,8@0)"
    pitched = graph_of_memory(P("(n,m):(1,p)"), known)
    assert [str(leaf) for leaf in pitched.leaves] == ["x1{m}", "x0_r{p}"]
    assert memory_of(pitched, known) == (0, P("(n,m):(1,p)"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(4,2):(1@0,2@0)", "graph: no mode of (4,2):(1@0,2@0) counts on from 4 where 2:2@0 is"),
        ("(4,2):(1@0,0)", "graph: a mode of (4,2):(1@0,0) has stride 0"),
        ("(4,2):(2@0,1@1)", "graph: no mode of (4,2):(2@0,1@1) counts on from 1 where 4:2@0 is"),
    ],
)
def test_coordinates_that_no_graph_has(text: str, message: str) -> None:
    with pytest.raises(LayoutError) as refused:
        graph_of_coordinates(P(text))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(4,2):(1,2)", "graph: no mode of (4,2):(1,2) steps over whole modes, from stride 1 on, where 2:2 is"),
        ("(4,2):(2,8)", "graph: no mode of (4,2):(2,8) steps over whole modes, from stride 1 on, where 4:2 is"),
        ("(4,2):(1,0)", "graph: no mode of (4,2):(1,0) steps over whole modes, from stride 1 on, where 2:0 is"),
        ("(4,2):(1@0,1@1)", "graph: (4,2):(1@0,1@1) gives coordinates, not where items lie"),
    ],
)
def test_memory_that_no_graph_has(text: str, message: str) -> None:
    with pytest.raises(LayoutError) as refused:
        graph_of_memory(P(text))
    assert message in str(refused.value)


def test_planted_errors_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pad that is forgotten, and modes that count on from anywhere, give other maps."""
    padded, doubled = P("(4,3):(1,8)"), P("(4,2):(1@0,2@0)")
    assert as_map(padded, [Sym("x0"), Sym("x1")]).is_equal(memory(graph_of_memory(padded)))
    monkeypatch.setattr(bridge, "minus", lambda room, size: 0)
    assert not as_map(padded, [Sym("x0"), Sym("x1")]).is_equal(memory(graph_of_memory(padded)))
    monkeypatch.setattr(bridge.Prover, "equal", lambda self, a, b: True)
    graph = graph_of_coordinates(doubled)
    assert not loops(graph).is_equal(as_map(doubled, [leaf.sym for leaf in graph.leaves]))
