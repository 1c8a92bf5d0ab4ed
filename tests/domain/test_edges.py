"""Nothing, less than nothing, and very much: no division by zero, nothing visited that is not there."""

from __future__ import annotations

import pytest
from tests.domain.arrays import evaluate
from tests.steps import pairs, steps

from texpr.affine.expr import Sym, sym
from texpr.affine.facts import Fact, Known
from texpr.domain import DomainGraph
from texpr.domain.context import Context
from texpr.domain.coverage import Verdict, coverage
from texpr.domain.iterdomain import Side
from texpr.domain.predicates.needed import predicates
from texpr.domain.predicates.width import index_bits
from texpr.domain.transforms.swizzle import Shift, Xor
from texpr.domain.trial import points

N, M = sym("N"), sym("M")
SIZES = Known({Sym("N"): (0, None), Sym("M"): (0, None)})


def kept(graph: DomainGraph, known: Known | None = None) -> set[str]:
    return {str(each.bound) for each in predicates(graph, known).kept}


def visited(graph: DomainGraph, known: Known | None = None, **sizes: int) -> list[tuple[int, ...]]:
    """The logical indices that the code meets, one after the other; a division by zero raises."""
    named = {Sym(name): value for name, value in sizes.items()}
    found = predicates(graph, known)
    indices = graph.indices()
    items: list[tuple[int, ...]] = []
    for at in points(graph.leaves, named) or ():
        if all([int(evaluate(each.margin, at)) >= 0 for each in found.kept]):  # each is computed
            items.append(tuple(int(evaluate(indices[d.sym], at)) for d in graph.logical))
    return items


def test_a_split_needs_a_positive_factor() -> None:
    graph = DomainGraph.of(("x", N))
    for factor in (0, -4):
        with pytest.raises(ValueError, match="positive"):
            graph.split("x", factor)
    assert [str(each) for each in graph.split("x", M).premises()] == ["N", "M - 1"]
    assert [str(each) for each in graph.split("x", M, outer=True).premises()] == ["N", "M - 1"]


def test_extents_that_are_seen_to_be_negative_are_refused() -> None:
    with pytest.raises(ValueError, match="not negative"):
        DomainGraph.of(("x", -1))
    with pytest.raises(ValueError, match="less than nothing"):
        DomainGraph.of(("x", 3)).resize("x", -2, -2)


def test_loops_that_never_run_need_no_comparison() -> None:
    graph = DomainGraph.of(("x", 0), ("y", 7)).split("x", 4).split("y", 2)
    assert kept(graph) == set() and visited(graph) == []
    graph = DomainGraph.of(("x", 3)).resize("x", -1, -2).split("x_r", 4, outer=True)
    assert kept(graph) == set() and visited(graph) == []
    assert str(coverage(graph).dropped) == "(0)"


def test_room_made_in_an_empty_domain_is_all_holes() -> None:
    graph = DomainGraph.of(("x", 0)).resize("x", 1, 2)
    assert visited(graph) == [] and kept(graph) == {"0 <= x", "x < 0"}
    graph = DomainGraph.of(("x", N)).split("x", 4).resize("x_o", 1, 1).resize("x_i", 1, 0)
    assert visited(graph, SIZES, N=0) == [] and visited(graph, SIZES, N=5) == [(k,) for k in range(5)]


@pytest.mark.parametrize("extent", [0, M])
def test_a_merge_with_an_inner_extent_of_zero_divides_by_nothing(extent: object) -> None:
    graph = DomainGraph.of(("x", N), ("y", extent)).merge("x", "y").resize("x_y", 2, 3)  # type: ignore[arg-type]
    assert visited(graph, SIZES, N=4, M=0) == []
    assert visited(graph, None, N=4, M=0) == []
    assert visited(graph, SIZES, N=0, M=0) == []
    graph = DomainGraph.of(("x", N), ("y", M)).merge("x", "y").resize("x_y", 2, 3)
    assert visited(graph, SIZES, N=2, M=2) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_shift_over_nothing_divides_by_nothing() -> None:
    graph = DomainGraph.of(("x", N), ("y", M)).swizzle("x", "y", Shift()).resize("y_s", 1, 1)
    assert visited(graph, SIZES, N=3, M=0) == []
    assert sorted(visited(graph, SIZES, N=2, M=2)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    empty = DomainGraph.of(("x", 3), ("y", 0)).swizzle("x", "y", Shift())
    assert visited(empty) == []


def test_an_outer_split_of_nothing() -> None:
    graph = DomainGraph.of(("x", N)).split("x", 4, outer=True).resize("x_i", 0, 1)
    assert visited(graph, SIZES, N=0) == []
    assert sorted(visited(graph, SIZES, N=6)) == [(k,) for k in range(6)]
    assert [str(e) for e in DomainGraph.of(("x", 0)).split("x", 4, outer=True).below({Sym("x"): Sym("x")}).values()]


def test_extents_that_are_negative_at_some_sizes_visit_nothing_there() -> None:
    """The product of two negative extents is positive: the loops run, and every point is a hole."""
    graph = DomainGraph.of(("x", N), ("y", M)).resize("x", -2, -3).resize("y", 0, -5).merge("x_r", "y_r")
    for known in (SIZES, None):
        assert visited(graph, known, N=1, M=2) == []
        assert visited(graph, known, N=7, M=6) == [(2, 0), (3, 0)]
    large = Known({Sym("N"): (5, None), Sym("M"): (5, None)})
    assert kept(graph, large) == set()
    assert visited(graph, large, N=7, M=6) == [(2, 0), (3, 0)]
    outer = DomainGraph.of(("x", N)).resize("x", 0, -5).split("x_r", 2, outer=True).resize("x_r_i", 0, 9)
    assert visited(outer, SIZES, N=1) == [] and sorted(visited(outer, SIZES, N=8)) == [(0,), (1,), (2,)]


def of_extents_near(huge: int) -> None:
    graph = DomainGraph.of(("x", huge), ("y", huge + 1)).merge("x", "y").split("x_y", 1 << 20).split("x_y_i", 1 << 10)
    graph = graph.swizzle("x_y_o", "x_y_i_i", Xor(10))
    assert kept(graph) == set()
    assert kept(graph.split("x_y_i_o", 1000)) == {"x_y_i_o < 1024"}
    assert index_bits(graph) == 64
    assert coverage(graph).each_once
    assert coverage(graph.resize("x_y_o_s", 0, -1)).dropped.verdict is Verdict.SOME


def test_huge_extents_cost_no_more() -> None:
    small, large = steps(of_extents_near, (3 << 34,), (3 << 44,), first=(3 << 40,))
    assert large < 1.1 * small


def visiting(huge: int) -> None:
    """As if one were to go through a part of the loop."""
    of_extents_near(huge)
    pairs(huge.bit_length(), huge >> 34)


def test_what_goes_through_them_is_found() -> None:
    small, large = steps(visiting, (3 << 34,), (3 << 40,), first=(3 << 40,))
    assert large > 1.1 * small


def test_a_promise_of_positive_sizes_makes_the_division_plain() -> None:
    graph = DomainGraph.of(("x", N), ("y", M)).merge("x", "y").resize("x_y", 0, 1)
    assert "max" in str(graph.indices()[Sym("x")])
    found = predicates(graph, Known({}, [Fact(1, M, None)]))
    assert [str(each) for each in found.kept] == ["x_y_r < M * N"]
    graph = DomainGraph.of(("x", N), ("y", M)).merge("x", "y").split("x_y", 4)
    assert str(Context(graph, SIZES).index(Sym("x"))) == "((x_y_i + 4 * x_y_o) / M)"  # a loop over ⌈N · M / 4⌉ runs: M > 0
    inside = predicates(DomainGraph.of(("x", N), ("y", M)).merge("x", "y").split("x_y", 4), SIZES)
    assert [str(each) for each in inside.kept] == ["x_y_i + 4 * x_y_o < M * N"]


def test_a_comparison_hoisted_out_of_a_loop_over_nothing_divides_by_nothing() -> None:
    """The loop over z shows M to be positive, but the comparison of w is decided outside it."""
    graph = DomainGraph.of(("x", N), ("w", 3), ("z", M)).resize("w", 0, M - 3, "y").merge("x", "y", "m").resize("m", 0, 2, "r")
    found = predicates(graph, SIZES)
    (guard,) = [each for each in found.kept if each.bound.domain.sym == Sym("w") and each.bound.side is Side.HIGH]
    assert str(Context(graph, SIZES).index(Sym("w"))) == "(r % M)" and str(guard) == "(r % max(M, 1)) < 3"
    assert guard.margin.evaluate({Sym("r"): 1, Sym("M"): 0}) == 2
    positive = Known({Sym("N"): (0, None), Sym("M"): (1, None)})
    assert "max" not in " ".join(map(str, predicates(graph, positive).kept))
