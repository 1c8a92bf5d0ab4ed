"""Graphs at random: what the kept comparisons let through is the logical domain, each index once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from texpr.affine.expr import Expr, Sym
from texpr.domain.predicates import Predicates, predicates
from tests.domain.generate import Recipe, recipe

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
        assert Counter(map(tuple, got.tolist())) == Counter(tuple(each[name] for name in names) for each in walked), (seed, sizes)
        for each, test in zip(found.kept, tests, strict=True):
            others = [other for other in tests if other is not test]
            if (np.logical_and.reduce(others, axis=0) & ~test).any() if others else (~test).any():
                needed.discard(each.bound)
        statistics["points"] += count
        statistics["holes"] += count - len(walked)
        statistics["visited"] += len(walked)
    assert not needed, (seed, [str(each) for each in needed])
    statistics["kept"] += len(found.kept)
    statistics["undecided"] += len(found.undecided)
    statistics["symbolic"] += not all(size.is_fixed for _, size in made.logical)
    statistics.update({f"by {each.theorem}": 1 for each in found.removed})
    statistics.update({step.kind: 1 for step in made.steps})


@pytest.mark.parametrize("seed", range(60))
def test_random(seed: int) -> None:
    check(seed, Counter())
