"""A graph of 40 transforms has its comparisons at once."""

from __future__ import annotations

from time import process_time

import pytest
from bench.common.graphs import mixed, tiled

from texpr.affine.expr import IntoExpr, sym
from texpr.domain.predicates import predicates

FIXED: list[IntoExpr] = [1000, 777, 640]
SYMBOLIC: list[IntoExpr] = [sym("M"), sym("N"), sym("K")]


@pytest.mark.parametrize("sizes", [FIXED, SYMBOLIC], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("build", [tiled, mixed])
def test_40_transforms_are_fast(build: object, sizes: list[IntoExpr]) -> None:
    """20 ms is what `bench/domain.py` measures; a busy machine gets ten times that."""
    assert callable(build)
    times: list[float] = []
    for _ in range(4):
        start = process_time()
        graph = build(sizes)
        predicates(graph)
        times.append(process_time() - start)
    assert len(graph.transforms) == 40
    assert min(times) < 0.2, times
