"""Figures and small cases: which comparisons are kept."""

from __future__ import annotations

from itertools import product

from texpr.affine.expr import Sym, sym
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.predicates.needed import predicates
from texpr.domain.transforms.swizzle import Shift

N, M = sym("N"), sym("M")
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
    graph = DomainGraph.of(("x", N)).split("x", 8).split("x_i", 2)
    assert kept(graph, Known({}, [multiple_of(N, 8)])) == set()
    assert kept(graph, Known({}, [multiple_of(N, 4)])) == {"x < N"}
    assert kept(graph) == {"x < N"}


def test_of_equivalent_comparisons_the_one_on_outer_leaves_stays() -> None:
    graph = DomainGraph.of(("x", N)).split("x", 4, ("o", "i")).split("o", 3)
    assert kept(graph, Known({}, [multiple_of(N, 4)])) == {"o < -((-N) / 4)"}  # decided before i, and x < N follows
    merged = DomainGraph.of(("x", 5), ("y", 8)).merge("x", "y", "m").split("m", 8, ("o", "i")).split("o", 2)
    assert [str(each) for each in predicates(merged).kept] == ["o_i + 2 * o_o < 5"]
    swizzled = DomainGraph.of(("x", 5), ("y", 8)).swizzle("x", "y", Shift(), ("p", "q")).split("p", 2)
    assert kept(swizzled) == {"x < 5"} and {each.theorem for each in predicates(swizzled).removed} > {"Theorem 4"}


def test_symbolic_factors_are_positive_by_contract() -> None:
    graph = DomainGraph.of(("x", N)).split("x", M, ("o", "i"))
    assert kept(graph) == {"x < N"}
    assert kept(graph, Known({}, [Fact(0, -(N % M), None)])) == set()
    assert kept(DomainGraph.of(("x", N * M)).split("x", M)) == set()
    assert kept(DomainGraph.of(("x", N * M)).split("x", N, outer=True)) == set()
    assert kept(graph.split("o", 2)) == {"x < N"}
    assert kept(graph.split("i", 2)) == {"x < N", "i < M"}


def test_every_comparison_that_goes_says_why() -> None:
    found = predicates(FIGURE_1)
    assert [str(each) for each in found.kept] == ["4 * i5 + i6 < 6", "12 * i3 + 6 * i4 + 4 * i5 + i6 < 15"]
    reasons = {str(each) for each in found.removed}
    assert "i1 < 3 by Theorem 1, from i0 < 15, 0 <= i2" in reasons
    assert "0 <= i2 by Split: no holes below, from 0 <= i5, 0 <= i6" in reasons


def test_isl_removes_what_no_theorem_does() -> None:
    graph = DomainGraph.of(("x", 2)).split("x", 8, ("o", "i")).split("i", 3, ("p", "q"))
    found = predicates(graph)
    assert {str(each.bound) for each in found.kept} == {"x < 2"}
    assert "i < 8 by isl, from x < 2" in {str(each) for each in found.removed}


def test_where_a_guard_elsewhere_keeps_everything_out_it_alone_is_kept() -> None:
    graph = DomainGraph.of(("x", 0), ("y", 5)).resize("x", 0, 1).split("y", 2)
    assert kept(graph) == {"x < 0"}


def test_what_products_of_sizes_leave_open_is_said() -> None:
    graph = DomainGraph.of(("x", N * M)).resize("x", 0, N * M - N * M * N)
    found = predicates(graph, Known({Sym("N"): (0, None), Sym("M"): (0, None)}))
    assert [str(each) for each in found.undecided] == ["x < M * N"]  # N * M * (1 - N) is never positive, but for N = 0
    differs = DomainGraph.of(("x", N * M)).resize("x", 0, (M - N) * (M - N))
    assert [str(each.bound) for each in predicates(differs).kept] == ["x < M * N"] and not predicates(differs).undecided
