"""Allocations: sizes, holes and places, against integers that are followed down by hand."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import numpy as np
import pytest
from tests.domain.generate import Recipe, Size, recipe

from texpr.affine.expr import Sym, sym
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain import visits as enumeration
from texpr.domain.allocation import Hole, first_hole, hole_mask, holes, is_over_allocated, items, offset, place, size
from texpr.domain.iterdomain import Bound, high, low
from texpr.domain.validity import guard
from texpr.domain.visits import TooMany
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set

N = sym("N")


def figure_one() -> DomainGraph:
    """split(I0{15}, 6), then both outputs again: three indivisible splits."""
    made = DomainGraph.of(("i0", 15)).split("i0", 6, ("i1", "i2"))
    return made.split("i1", 2, ("i3", "i4")).split("i2", 4, ("i5", "i6"))


def test_six_items_as_two_by_four() -> None:
    graph = DomainGraph.of(("i", 6)).split("i", 4, ("o", "t"))
    assert (str(size(graph)), str(items(graph))) == ("8", "6")
    assert np.flatnonzero(hole_mask(graph)).tolist() == [6, 7]
    assert holes(graph).points() == {(1, 2), (1, 3)}
    assert first_hole(graph) == Hole((1, 2), {})
    assert str(first_hole(graph)) == "(1, 2)"
    assert [tuple(e.constant for e in place(graph, (i,))) for i in (0, 3, 4, 5)] == [(0, 0), (0, 3), (1, 0), (1, 1)]
    assert [offset(graph, (i,)).constant for i in range(6)] == list(range(6))


@pytest.mark.parametrize("outer", [False, True])
def test_a_split_over_allocates_unless_it_is_divisible(outer: bool) -> None:
    for extent, factor in product(range(17), range(1, 10)):
        graph = DomainGraph.of(("i", extent)).split("i", factor, ("o", "t"), outer=outer)
        rounded = -(-extent // factor) * factor
        assert size(graph).constant == rounded
        assert hole_mask(graph).sum() == len(holes(graph).points()) == rounded - extent
        assert is_over_allocated(graph) == (extent % factor != 0)


def test_sizes_stay_symbols() -> None:
    graph = DomainGraph.of(("i", N)).split("i", 4, ("o", "t"))
    assert str(size(graph)) == "-4 * ((-N) / 4)"
    assert str(offset(graph, (sym("x"),))) in ("(x % 4) + 4 * (x / 4)", "4 * (x / 4) + (x % 4)")
    assert first_hole(graph) == Hole((0, 1), {Sym("N"): 1})
    assert str(first_hole(graph)) == "(0, 1), N = 1"
    assert not is_over_allocated(graph, Known({}, [multiple_of(N, 4)]))
    for n in range(9):
        mask = hole_mask(graph, {Sym("N"): n})
        assert holes(graph).points({Sym("N"): n}) == {tuple(map(int, at)) for at in np.argwhere(mask)}


def test_symbolic_factors_are_decided_by_counting_or_shown_by_small_sizes() -> None:
    n = sym("n")
    assert first_hole(DomainGraph.of(("i", 24 * n)).split("i", n)) is None
    found = first_hole(DomainGraph.of(("i", 24)).split("i", n))
    assert found is not None
    factor = found.sizes[Sym("n")]
    assert 24 % factor
    assert found.index[0] * factor + found.index[1] >= 24
    with pytest.raises(Undecided, match="holes"):
        first_hole(DomainGraph.of(("i", n * (n + 1))).split("i", 2))  # a product of neighbours is even; no rule says so


def test_what_is_known_of_products_is_respected() -> None:
    """isl is not told of n · n; a hole that it finds at other sizes is not believed."""
    graph = DomainGraph.of(("i", N)).split("i", 4)
    hole = first_hole(graph, Known({}, [Fact(5, N * N, 17)]))
    assert hole is not None
    assert hole.sizes == {Sym("N"): 3}
    assert first_hole(graph, Known({}, [Fact(5, N * N, 17), multiple_of(N, 4)])) is None
    with pytest.raises(Undecided):
        first_hole(graph, Known({}, [Fact(16, N * N, 17)]))


def test_cut_items_have_no_place_and_left_expands_make_holes() -> None:
    graph = DomainGraph.of(("i", 5)).resize("i", 2, -1, "r")
    assert hole_mask(graph).tolist() == [True, True, False, False, False, False]
    again = DomainGraph.of(("i", 5)).resize("i", 0, -2, "r").resize("r", 0, 2, "s")
    assert hole_mask(again).tolist() == [False] * 3 + [True] * 2


def test_an_index_with_items_above_may_be_a_hole() -> None:
    """Holes are indices with no item *below which they lie*; 4 of figure 1's have a logical index in bounds all the same."""
    graph = figure_one()
    leaves = [leaf.sym for leaf in graph.leaves]
    mask = hole_mask(graph)
    assert (mask.size, mask.sum()) == (32, 17)
    inside = Set.of(leaves, guard(graph, (low(graph["i0"]), high(graph["i0"]))))
    assert len(holes(graph).intersect(inside).points()) == 4


def placed(made: Recipe, sizes: dict[str, int], graph: DomainGraph) -> np.ndarray:
    """False where an item lies; the places and offsets of all items are compared on the way."""
    given = {Sym(name): value for name, value in sizes.items()}
    extents = made.extents(sizes)
    shape = [extents[leaf.sym.name] for leaf in graph.leaves]
    assert size(graph).evaluate(given) == prod(shape)
    empty = np.ones(shape, dtype=np.bool_)
    for at in made.walk(sizes):
        index = tuple(at[leaf.sym.name] for leaf in graph.leaves)
        assert empty[index], "two items at one place"
        empty[index] = False
        item = [at[d.sym.name] for d in graph.logical]
        assert tuple(e.evaluate(given) for e in place(graph, item)) == index
        assert offset(graph, item).evaluate(given) == (np.ravel_multi_index(index, shape) if index else 0)
    return empty


def check(made: Recipe, statistics: Counter[str]) -> None:
    graph = made.graph()
    try:
        hole = first_hole(graph, made.known())
        statistics["decided"] += 1
    except Undecided:
        hole = Hole((), {})
        statistics["undecided"] += 1
    for sizes in made.sizes():
        given = {Sym(name): value for name, value in sizes.items()}
        empty = placed(made, sizes, graph)
        assert (hole_mask(graph, given) == empty).all()
        assert hole is not None or not empty.any()
        if hole is not None and hole.sizes == given and hole.index:
            assert empty[hole.index]
            statistics["hole seen"] += 1
        fixed = fix(made, sizes).graph()
        assert holes(fixed).points() == {tuple(map(int, at)) for at in np.argwhere(empty)}
        found = first_hole(fixed)
        assert (found is not None) == empty.any()
        assert found is None or empty[found.index]


def fix(made: Recipe, sizes: dict[str, int]) -> Recipe:
    """The recipe with numbers in place of its named sizes."""
    logical = tuple((name, s if s.is_fixed else Size("", (sizes[s.name],))) for name, s in made.logical)
    return Recipe(logical, made.steps)


def test_random_graphs() -> None:
    statistics: Counter[str] = Counter()
    for seed in range(6):
        check(recipe(seed), statistics)
    assert statistics["hole seen"] > 0
    assert statistics["undecided"] < statistics["decided"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 500, 20))
def test_more_random_graphs(seed: int) -> None:
    statistics: Counter[str] = Counter()
    for each in range(seed, seed + 20):
        check(recipe(each), statistics)


def test_holes_by_the_logical_domain_alone_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    def logical_only(graph: DomainGraph) -> tuple[Bound, ...]:
        return tuple(side(d) for d in graph.logical for side in (low, high))

    made = next(r for r in map(recipe, range(50)) if sum(step.kind == "split" for step in r.steps) > 3)
    check(made, Counter())
    monkeypatch.setattr(enumeration, "every_bound", logical_only)
    with pytest.raises(AssertionError):
        for seed in range(10):
            check(recipe(seed), Counter())


def test_too_many_positions_are_refused() -> None:
    with pytest.raises(TooMany):
        hole_mask(DomainGraph.of(("i", 1 << 30)))
