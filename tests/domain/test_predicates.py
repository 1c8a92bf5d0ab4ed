"""Figures and small cases: which comparisons are kept."""

from __future__ import annotations

from itertools import product

from texpr.affine.expr import Sym, sym
from texpr.affine.facts import Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.predicates import predicates

FIGURE_1 = DomainGraph.of(("i0", 15)).split("i0", 6, ("i1", "i2")).split("i1", 2, ("i3", "i4")).split("i2", 4, ("i5", "i6"))


def kept(graph: DomainGraph, known: Known | None = None) -> set[str]:
    """The comparisons that are kept, on IterDomains by name."""
    return {str(each.bound) for each in predicates(graph, known).kept}


def test_figure_1_needs_two_of_three() -> None:
    assert kept(FIGURE_1) == {"i0 < 15", "i2 < 6"}


def test_figure_1_visits_15_and_with_one_comparison_19() -> None:
    found = predicates(FIGURE_1)
    i0 = FIGURE_1.indices()[Sym("i0")]
    both: list[int] = []
    one: list[int] = []
    for point in product(*(range(leaf.extent.constant) for leaf in FIGURE_1.leaves)):
        values = dict(zip((leaf.sym for leaf in FIGURE_1.leaves), point, strict=True))
        item = i0.evaluate(values)
        if all(each.margin.evaluate(values) >= 0 for each in found.kept):
            both.append(item)
        if item < 15:
            one.append(item)
    assert sorted(both) == both == list(range(15))
    assert one == [0, 1, 2, 3, 4, 5, 6, 7, 6, 7, 8, 9, 10, 11, 12, 13, 12, 13, 14]


def test_nothing_is_kept_where_every_split_divides() -> None:
    graph = DomainGraph.of(("x", 24), ("y", 8)).split("x", 6).split("x_i", 3).merge("x_o", "y").split("x_o_y", 16)
    assert kept(graph) == set()


def test_nothing_is_kept_where_every_split_divides_by_where() -> None:
    n = sym("N")
    graph = DomainGraph.of(("x", n)).split("x", 8).split("x_i", 2)
    assert kept(graph, Known({}, [multiple_of(n, 8)])) == set()
    assert kept(graph, Known({}, [multiple_of(n, 4)])) == {"x < N"}
    assert kept(graph) == {"x < N"}
