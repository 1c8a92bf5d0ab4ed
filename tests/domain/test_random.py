"""Graphs at random: what the kept comparisons let through is the logical domain, each index once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.domain.generate import Recipe, recipe

from texpr.affine.expr import Expr, Sym
from texpr.domain.iterdomain import Bound
from texpr.domain.predicates import Predicates, predicates

Ints = NDArray[np.int64]


def points(made: Recipe, sizes: dict[str, int]) -> dict[Sym, Ints | int]:
    """Every point of the leaves, as arrays, and the sizes."""
    extents = made.extents(sizes)
    grid = np.indices(tuple(extents[leaf] for leaf in made.leaves()), dtype=np.int64).reshape(len(made.leaves()), -1)
    return {**{Sym(leaf): grid[at] for at, leaf in enumerate(made.leaves())}, **{Sym(s): v for s, v in sizes.items()}}


def values(of: Expr, at: dict[Sym, Ints | int]) -> Ints:
    """The values of an expression at many points; a division by zero raises."""
    with np.errstate(divide="raise"):
        found = of.evaluate(at)  # type: ignore[arg-type]  # its arithmetic is that of arrays, too
    return np.broadcast_to(found, next(len(v) for v in at.values() if isinstance(v, np.ndarray)))


def holds(found: Predicates, at: dict[Sym, Ints | int]) -> list[Ints]:
    return [values(each.margin, at) >= 0 for each in found.kept]


def grid(made: Recipe, sizes: dict[str, int], random: np.random.Generator) -> dict[Sym, Ints | int]:
    """Some points of the leaves, where there are too many to try all."""
    extents = made.extents(sizes)
    ends = {leaf: max(extents[leaf], 1) for leaf in made.leaves()}
    near = {leaf: random.integers(0, end, 4000) for leaf, end in ends.items()}
    return {**{Sym(leaf): v for leaf, v in near.items()}, **{Sym(s): v for s, v in sizes.items()}}


def witnessed(found: Predicates, at: dict[Sym, Ints | int]) -> set[Bound]:
    """The comparisons that alone keep a point out."""
    tests = holds(found, at)
    failed = np.sum([~test for test in tests], axis=0)
    return {each.bound for each, test in zip(found.kept, tests, strict=True) if (~test & (failed == 1)).any()}


def check(seed: int, statistics: Counter[str]) -> None:
    made = recipe(seed)
    graph = made.graph()
    found = predicates(graph, made.known())
    indices = graph.indices()
    needed = {each.bound for each in found.kept} - set(found.undecided)
    for sizes in made.sizes():
        at = points(made, sizes)
        tests = holds(found, at)
        count = next(len(v) for v in at.values() if isinstance(v, np.ndarray))
        valid = np.logical_and.reduce(tests, axis=0) if tests else np.ones(count, bool)
        names = [*made.leaves(), *(name for name, _ in made.logical)]
        got = np.stack([values(indices[Sym(name)], at)[valid] for name in names], axis=1)
        walked = list(made.walk(sizes))
        assert Counter(map(tuple, got.tolist())) == Counter(tuple(each[name] for name in names) for each in walked), (
            seed,
            sizes,
        )
        needed -= witnessed(found, at)
        statistics["points"] += count
        statistics["holes"] += count - len(walked)
        statistics["visited"] += len(walked)
    random = np.random.default_rng(seed)
    named = [size for _, size in made.logical if not size.is_fixed]
    for _ in range(40 if needed and named else 0):  # some are needed at greater sizes only
        sizes = {size.name: size.unit * int(random.integers(0, 60 // size.unit)) for size in named}
        if min(made.extents(sizes).values()) > 0:
            needed -= witnessed(found, grid(made, sizes, random))
    assert not needed, (seed, [str(each) for each in needed])
    statistics["kept"] += len(found.kept)
    statistics["undecided"] += len(found.undecided)
    statistics["symbolic"] += not all(size.is_fixed for _, size in made.logical)
    statistics.update({f"by {each.theorem}": 1 for each in found.removed})
    statistics.update({step.kind: 1 for step in made.steps})


@pytest.mark.parametrize("seed", range(60))
def test_random(seed: int) -> None:
    check(seed, Counter())
