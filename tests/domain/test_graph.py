"""Graphs as values: where leaves stand, what is refused, what follows from what."""

from __future__ import annotations

import pytest

from texpr.affine.expr import Sym, expr, sym
from texpr.domain import DomainGraph
from texpr.domain.transforms.swizzle import Shift, Xor

N = sym("N")
I0, I1, I2, I3, I4, I5, I6 = (Sym(f"i{k}") for k in range(7))
FIGURE_1 = DomainGraph.of(("i0", 15)).split("i0", 6, ("i1", "i2")).split("i1", 2, ("i3", "i4")).split("i2", 4, ("i5", "i6"))


def leaves(graph: DomainGraph) -> list[str]:
    return [str(leaf) for leaf in graph.leaves]


def test_leaves_stand_where_what_they_come_from_stood() -> None:
    assert leaves(FIGURE_1) == ["i3{2}", "i4{2}", "i5{2}", "i6{4}"]
    graph = DomainGraph.of(("a", 2), ("b", 3), ("c", 4), ("d", 5))
    assert leaves(graph.merge("d", "b", "m")) == ["a{2}", "m{15}", "c{4}"]
    assert leaves(graph.split("b", 2, outer=True)) == ["a{2}", "b_o{2}", "b_i{2}", "c{4}", "d{5}"]
    assert leaves(graph.resize("c", 1, -2)) == ["a{2}", "b{3}", "c_r{3}", "d{5}"]
    assert leaves(graph.swizzle("d", "a", Shift())) == ["a_s{2}", "b{3}", "c{4}", "d_s{5}"]
    assert leaves(graph.reorder("d", "b")) == ["a{2}", "d{5}", "c{4}", "b{3}"]


def test_each_step_is_a_new_value() -> None:
    graph = DomainGraph.of(("a", N))
    assert graph.split("a", 4) == graph.split("a", 4) != graph
    assert leaves(graph) == ["a{N}"] and graph.transforms == ()
    assert [str(d) for d in graph.split("a", 4).domains()] == ["a{N}", "a_o{-((-N) / 4)}", "a_i{4}"]


def test_indices_go_up_and_below_goes_down() -> None:
    up = FIGURE_1.indices()
    assert up[I1] == 2 * expr(I3) + I4 and up[I0] == 6 * up[I1] + 4 * expr(I5) + I6
    given = FIGURE_1.indices({I1: 2, I2: 3})
    assert given == {I1: expr(2), I2: expr(3), I0: expr(15)}
    below = FIGURE_1.below({I0: 14})
    assert [below[name].constant for name in (I1, I2, I3, I4, I5, I6)] == [2, 2, 1, 0, 0, 2]
    assert FIGURE_1.below({I1: 1}) == {I1: expr(1), I3: expr(0), I4: expr(1)}


def test_above_is_the_part_that_some_iterdomains_determine() -> None:
    part = FIGURE_1.above([I3, I4])
    assert [str(d) for d in part.logical] == ["i1{3}"] and leaves(part) == ["i3{2}", "i4{2}"] and len(part.transforms) == 1
    whole = FIGURE_1.above([I1, I5, I6])
    assert [str(d) for d in whole.logical] == ["i0{15}"] and leaves(whole) == ["i1{3}", "i5{2}", "i6{4}"]


def test_what_is_refused() -> None:
    graph = DomainGraph.of(("a", N), ("b", 8))
    refused = {
        "two IterDomains have one name": lambda: DomainGraph.of(("a", 1), ("a", 2)),
        "`c` is not a leaf; the leaves are a{N}, b{8}": lambda: graph.split("c", 2),
        "`a` is not a leaf": lambda: graph.split("a", 2).split("a", 2),
        "`a` cannot be merged with itself": lambda: graph.merge("a", "a"),
        "`b` cannot be swizzled with itself": lambda: graph.swizzle("b", "b", Shift()),
        "an IterDomain is named twice": lambda: graph.reorder("a", "a"),
        "Split(2) gives a name that is taken": lambda: graph.split("a", 2, ("b", "c")),
        "Split(3) gives a name that is taken": lambda: graph.split("a", 3, ("c", "c")),
        "`N` names an IterDomain, and a size in an extent": lambda: graph.split("b", 2, ("N", "M")),
        "`b` names an IterDomain, and a size in an extent": lambda: graph.split("a", sym("b")),
        "a multiple of it, not 8": lambda: graph.swizzle("a", "b", Xor(4)),
    }
    for message, step in refused.items():
        with pytest.raises(ValueError) as caught:
            step()
        assert message in str(caught.value)
    with pytest.raises(KeyError):
        graph["c"]
