"""The comparisons of a graph of 40 transforms are found in few steps; `bench/domain.py` measures how long that takes."""

from __future__ import annotations

import pytest
from bench.common.graphs import mixed, tiled
from tests.steps import growth, pairs, steps

from texpr.affine.expr import IntoExpr, sym
from texpr.domain.predicates.needed import predicates

SIZES: dict[str, list[IntoExpr]] = {"fixed": [1000, 777, 640], "symbolic": [sym("M"), sym("N"), sym("K")]}


def of_mixed(sizes: str, transforms: int) -> None:
    predicates(mixed(SIZES[sizes], transforms))


def of_tiled_and_mixed(sizes: str, kind: str) -> None:
    predicates({"tiled": tiled, "mixed": mixed}[kind](SIZES[sizes]))


def comparing(sizes: str, transforms: int) -> None:
    """As if each transform were compared with each other once more."""
    of_mixed(sizes, transforms)
    pairs(transforms, 1000)


TWICE = 3.2
"""Of a graph of twice as many transforms, whose indices are deeper, too."""


@pytest.mark.parametrize("sizes", SIZES)
def test_twice_as_many_transforms(sizes: str) -> None:
    assert growth(of_mixed, sizes, length=20) < TWICE


@pytest.mark.parametrize("sizes", SIZES)
def test_what_is_tiled_takes_no_more_than_what_is_mixed(sizes: str) -> None:
    tiles, others = steps(of_tiled_and_mixed, (sizes, "tiled"), (sizes, "mixed"), first=(sizes, "tiled"))
    assert tiles < others


def test_what_compares_each_transform_with_each_other_is_found() -> None:
    assert growth(comparing, "fixed", length=20) > TWICE
