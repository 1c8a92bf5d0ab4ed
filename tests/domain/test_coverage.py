"""Is every logical index visited, and once: theorems, isl, trials, and the witnesses that they give."""

from __future__ import annotations

import numpy as np
import pytest
from tests.domain.generate import recipe

from texpr.affine.expr import Expr, Sym, expr, sym
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.coverage import Coverage, Verdict, coverage, keeps
from texpr.domain.transforms.swizzle import Custom, Shift, Xor

N, M = sym("N"), sym("M")
SIZES = Known({Sym("N"): (0, None), Sym("M"): (0, None)})
O, I = expr(Sym("o")), expr(Sym("i"))  # noqa: E741


def custom(to: Expr, back: Expr) -> Custom:
    return Custom(to, back, Sym("o"), Sym("i"))


def text(found: Coverage) -> tuple[str, str]:
    return str(found.dropped), str(found.doubled)


def test_splits_merges_growing_resizes_and_swizzles_visit_each_once() -> None:
    graph = DomainGraph.of(("x", N), ("y", M)).split("x", 3).merge("x_i", "y").resize("x_i_y", 2, 5).split("x_i_y_r", 4)
    graph = graph.swizzle("x_i_y_r_o", "x_i_y_r_i", Xor(2)).swizzle("x_o", "x_i_y_r_o_s", Shift())
    assert coverage(graph, SIZES).each_once


def test_a_negative_resize_drops_what_it_leaves_out() -> None:
    assert text(coverage(DomainGraph.of(("x", 7)).resize("x", 0, -2))) == ("(5)", "never")
    assert text(coverage(DomainGraph.of(("x", N)).resize("x", -1, 0), SIZES)) == ("(0) where N = 1", "never")


def test_a_negative_resize_that_leaves_only_holes_out_drops_nothing() -> None:
    assert coverage(DomainGraph.of(("x", N)).resize("x", 2, 3).resize("x_r", -2, -2), SIZES).each_once


def test_an_xor_over_a_broken_block_drops_an_index() -> None:
    graph = DomainGraph.of(("x", 2), ("y", N)).swizzle("x", "y", Xor(1))
    assert text(coverage(graph, SIZES)) == ("(1, 0) where N = 1", "never")
    assert coverage(graph, Known({Sym("N"): (0, None)}, [multiple_of(N, 2)])).each_once
    with pytest.raises(ValueError, match="multiple"):
        DomainGraph.of(("x", 2), ("y", 5)).swizzle("x", "y", Xor(1))


def test_a_custom_permutation_is_proved_or_refuted() -> None:
    def verdict(how: Custom, extent: Expr | int, known: Known = SIZES) -> str:
        step = DomainGraph.of(("x", M), ("y", extent)).swizzle("x", "y", how).transforms[-1]
        return str(keeps(step, known))

    assert verdict(custom(N - 1 - I, N - 1 - I), N) == "never"  # by rules alone
    assert verdict(custom((I + 3 * O) % 8, (I - 3 * O) % 8), 8) == "never"  # by isl
    assert verdict(custom(I * 2 % 8, I // 2), 8) == "(0, 4) where M = 1"  # not injective
    assert verdict(custom((I + 1) % 8, (I + 1) % 8), 8) == "(0, 0) where M = 1"  # not inverse
    assert verdict(custom(I + O, I - O), 8) == "(1, 7) where M = 2"  # out of bounds
    assert verdict(custom((I + O * M) % N, (I - O * M) % N), N) == "undecided"
    assert verdict(custom((I + O * M) % N, (I + O * M) % N), N) == "(1, 0) where M = 2, N = 3"  # not inverse: by trial


def test_a_permutation_that_is_none_doubles_and_drops() -> None:
    graph = DomainGraph.of(("x", 1), ("y", 4)).swizzle("x", "y", custom(I * 2 % 4, I // 2))
    assert text(coverage(graph)) == ("(0, 2)", "(0, 0)")
    mixed = DomainGraph.of(("x", 3), ("y", 4)).swizzle("x", "y", custom(O * I % 4, I * O % 4))
    assert text(coverage(mixed)) == ("(0, 1)", "(0, 0)")  # not affine: each point is tried
    twice = DomainGraph.of(("x", 3), ("y", 4)).swizzle("x", "y", custom(I * (O + 2) % 4, I * (O + 2) % 4))
    assert text(coverage(twice)) == ("(0, 1)", "(0, 0)")  # two points at (0, 0), four at (2, 0)


def test_what_nothing_decides_is_undecided() -> None:
    graph = DomainGraph.of(("x", M), ("y", N)).swizzle("x", "y", custom((I + O * M) % N, (I - O * M) % N))
    assert text(coverage(graph, SIZES)) == ("undecided", "undecided")


@pytest.mark.parametrize("seed", range(60))
def test_random(seed: int) -> None:
    made = recipe(seed)
    found = coverage(made.graph(), made.known())
    assert found.doubled.verdict is not Verdict.SOME
    assert found.doubled.verdict is Verdict.NEVER or found.dropped.verdict is not Verdict.NEVER
    names = [name for name, _ in made.logical]
    for sizes in made.sizes():
        box = int(np.prod([made.extents(sizes)[name] for name in names], dtype=np.int64))
        if found.dropped.verdict is Verdict.NEVER:
            assert len(list(made.walk(sizes))) == box
    if found.dropped.verdict is Verdict.SOME:
        sizes = {name.name: value for name, value in found.dropped.sizes}
        missing = {size.name: 0 for _, size in made.logical if not size.is_fixed and size.name not in sizes}
        walked = {tuple(at[name] for name in names) for at in made.walk({**missing, **sizes})}
        assert found.dropped.index not in walked


def test_facts_of_sizes_are_used() -> None:
    graph = DomainGraph.of(("x", N)).resize("x", 0, 8 - N)
    assert not coverage(graph, SIZES).each_once
    assert coverage(graph, Known({Sym("N"): (0, None)}, [Fact(None, N, 9)])).each_once
