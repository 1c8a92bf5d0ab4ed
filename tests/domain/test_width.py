"""32 or 64 bits: at the largest sizes, everything is computed and must fit, or 64 are asked for."""

from __future__ import annotations

from itertools import product

import pytest
from tests.domain.generate import recipe

from texpr.affine.expr import Sym, sym
from texpr.affine.facts import Fact, Known
from texpr.domain import DomainGraph
from texpr.domain.predicates.needed import predicates
from texpr.domain.predicates.width import index_bits
from texpr.domain.transforms.swizzle import Shift
from texpr.support.limits import LARGEST_SIZE

N, M = sym("N"), sym("M")


def test_a_split_fits_while_its_padding_does() -> None:
    assert index_bits(DomainGraph.of(("x", N)).split("x", 1 << 16)) == 32
    assert index_bits(DomainGraph.of(("x", N)).split("x", 100_000)) == 64  # the last block ends beyond 2^31
    assert index_bits(DomainGraph.of(("x", LARGEST_SIZE)).split("x", 3 << 20)) == 64
    assert index_bits(DomainGraph.of(("x", 1 << 30)).split("x", 1 << 20)) == 32
    twice = DomainGraph.of(("x", N)).split("x", 3 << 14).split("x_o", 3)
    assert index_bits(twice) == 64  # 3 · 3 · 2^14 more
    assert index_bits(twice, Known({Sym("N"): (0, 1 << 30)})) == 32


def test_a_merge_of_two_sizes_needs_64_unless_they_are_known_to_be_small() -> None:
    graph = DomainGraph.of(("x", N), ("y", M)).merge("x", "y").split("x_y", 128)
    assert index_bits(graph) == 64
    assert index_bits(graph, Known({Sym("N"): (0, 1 << 15), Sym("M"): (0, 1 << 15)})) == 32
    assert index_bits(graph, Known({}, [Fact(None, N, 1 << 10), Fact(None, M, 1 << 20)])) == 32


def test_resizes_and_shifts_count() -> None:
    assert index_bits(DomainGraph.of(("x", N)).resize("x", 1 << 15, 1 << 15)) == 64  # 2^31 is not held
    assert index_bits(DomainGraph.of(("x", N)).resize("x", 1 << 15, (1 << 15) - 1)) == 32
    assert index_bits(DomainGraph.of(("x", N), ("y", N)).swizzle("x", "y", Shift())) == 32
    assert (
        index_bits(
            DomainGraph.of(
                ("x", 1 << 31),
            )
        )
        == 64
    )


@pytest.mark.parametrize("seed", range(30))
def test_random(seed: int) -> None:
    """At the corners of the leaves, and at the greatest sizes, whatever 32 bits are said to hold is in their range."""
    made = recipe(seed)
    graph = made.graph()
    named = sorted({Sym(size.name) for _, size in made.logical if not size.is_fixed}, key=str)
    for most in (LARGEST_SIZE, 1 << 12):
        known = made.known().also([Fact(0, name, most + 1) for name in named])
        if index_bits(graph, known) == 64:
            continue
        kept = predicates(graph, known).kept
        for sizes in product((most - most % 12, 12), repeat=len(named)):
            at = dict(zip(named, sizes, strict=True))
            extents = [leaf.extent.evaluate(at) for leaf in graph.leaves]
            for corner in product(*({0, extent - 1} if extent > 0 else () for extent in extents)):
                point = {**at, **{leaf.sym: k for leaf, k in zip(graph.leaves, corner, strict=True)}}
                values = (*graph.indices().values(), *(each.margin for each in kept), *(d.extent for d in graph.domains()))
                assert all(-(1 << 31) <= value.evaluate(point) < 1 << 31 for value in values)
