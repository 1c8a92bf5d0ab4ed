"""Graphs at random: what the kept comparisons let through is the logical domain, each index once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.domain.arrays import At, Ints, evaluate
from tests.domain.generate import Recipe, recipe

from texpr.affine.expr import Sym
from texpr.domain import DomainGraph
from texpr.domain.iterdomain import Bound, high, low
from texpr.domain.predicates.needed import Predicates, predicates
from texpr.support.record import replace

Flags = NDArray[np.bool_]


def points(made: Recipe, sizes: dict[str, int], some: np.random.Generator | None = None) -> tuple[int, dict[Sym, Ints | int]]:
    """Every point of the leaves, or `some` of them: how many, and their coordinates beside the sizes."""
    extents = made.extents(sizes)
    leaves = made.leaves()
    if some is None:
        grid = np.indices([extents[leaf] for leaf in leaves], dtype=np.int64).reshape(len(leaves), -1)
    else:
        grid = np.stack([some.integers(0, max(extents[leaf], 1), 4000) for leaf in leaves])
    named = {Sym(name): value for name, value in sizes.items()}
    return grid.shape[1], {**dict(zip(map(Sym, leaves), grid, strict=True)), **named}


def rows_of(found: Predicates, count: int, at: At) -> Flags:
    """A row for each kept comparison: where it holds."""
    rows = [np.broadcast_to(evaluate(each.margin, at) >= 0, (count,)) for each in found.kept]
    return np.array(rows, bool).reshape(len(rows), count)


def needed_at(found: Predicates, tests: Flags) -> set[Bound]:
    """The comparisons that alone keep some point out."""
    alone = (~tests & (np.sum(~tests, axis=0) == 1)).any(axis=1)
    return {each.bound for each, needed in zip(found.kept, alone, strict=True) if needed}


def check_visits(made: Recipe, graph: DomainGraph, found: Predicates) -> Counter[str]:
    """The points let through are those that a walk of the logical domain meets; indices lead there, and back."""
    up = graph.indices()
    down = graph.below({d.sym: d.sym for d in graph.logical})
    logical, leaves = [d.sym for d in graph.logical], [d.sym for d in graph.leaves]
    counted: Counter[str] = Counter()
    needed = {each.bound for each in found.kept} - set(found.undecided)
    for sizes in made.sizes():
        count, at = points(made, sizes)
        tests = rows_of(found, count, at)
        needed -= needed_at(found, tests)
        valid = tests.all(axis=0)
        inside = {name: value[valid] if isinstance(value, np.ndarray) else value for name, value in at.items()}
        items = {name: np.broadcast_to(evaluate(up[name], inside), int(valid.sum())) for name in logical}
        got = np.stack([*items.values(), *(inside[leaf] for leaf in leaves)], axis=1)
        walked = [tuple(each[name.name] for name in (*logical, *leaves)) for each in made.walk(sizes)]
        assert Counter(map(tuple, got.tolist())) == Counter(walked), sizes
        for leaf in leaves:
            np.testing.assert_array_equal(evaluate(down[leaf], {**inside, **items}), inside[leaf])
        counted.update(
            points=count, visited=len(walked), dropped=np.prod([made.extents(sizes)[n.name] for n in logical]) - len(walked)
        )
    check_needed(made, found, needed)
    return counted


def check_needed(made: Recipe, found: Predicates, open_: set[Bound]) -> None:
    """Those not seen to be needed at the recipe's own sizes are needed at greater ones."""
    random = np.random.default_rng(1)
    named = [size for _, size in made.logical if not size.is_fixed]
    for _ in range(40 if open_ and named else 0):
        sizes = {size.name: size.unit * int(2 ** random.uniform(0, 11) / size.unit) for size in named}
        if min(made.extents(sizes).values()) > 0:
            count, at = points(made, sizes, random)
            open_ = open_ - needed_at(found, rows_of(found, count, at))
    assert not open_, [str(each) for each in open_]


def check_reasons(graph: DomainGraph, found: Predicates) -> None:
    """Every bound is kept, or removed once by what is kept, a loop's own, or removed before it."""
    settled = {each.bound for each in found.kept} | {side(leaf) for leaf in graph.leaves for side in (low, high)}
    for each in found.removed:
        assert each.bound not in settled and settled.issuperset(each.by), str(each)
        settled.add(each.bound)
    assert settled == {side(domain) for domain in graph.domains() for side in (low, high)}


def check(seed: int) -> Counter[str]:
    made = recipe(seed)
    graph = made.graph()
    found = predicates(graph, made.known())
    check_reasons(graph, found)
    counted = check_visits(made, graph, found)
    counted.update(graphs=1, kept=len(found.kept), undecided=len(found.undecided))
    counted.update(symbolic=not all(size.is_fixed for _, size in made.logical), deep=len(made.steps) >= 6)
    counted.update({f"by {each.theorem}" for each in found.removed})
    counted.update({step.kind for step in made.steps})
    return counted


def check_statistics(counted: Counter[str]) -> None:
    """The graphs are not trivial: most are deep, many symbolic; points are visited, dropped and holes; each reason occurs."""
    graphs = counted["graphs"]
    assert counted["deep"] > 0.9 * graphs and 0.3 * graphs < counted["symbolic"] < 0.9 * graphs
    assert counted["kept"] > graphs and counted["undecided"] < 0.2 * counted["kept"]
    assert counted["visited"] > 50 * graphs and counted["dropped"] > graphs and counted["points"] > 2 * counted["visited"]
    kinds = ("split", "outer", "merge", "resize", "xor", "shift", "mirror", "stride", "blocks")
    assert all(counted[kind] >= graphs // 20 for kind in kinds), counted
    reasons = ("Theorem 1", "Theorem 2", "Theorem 3", "Theorem 4", "Split: divisible", "in range", "isl")
    assert all(counted[f"by {reason}"] >= graphs // 20 for reason in reasons), counted


def test_60_random_graphs() -> None:
    check_statistics(sum((check(seed) for seed in range(60)), Counter()))


@pytest.mark.long
def test_2000_random_graphs() -> None:
    check_statistics(sum((check(seed) for seed in range(1000, 3000)), Counter()))


def test_a_comparison_too_few_and_one_too_many_are_noticed() -> None:
    made = recipe(107)
    graph = made.graph()
    found = predicates(graph, made.known())
    assert len(found.kept) > 1
    for each in found.kept:
        with pytest.raises(AssertionError):
            check_visits(made, graph, replace(found, kept=tuple(other for other in found.kept if other is not each)))
    with pytest.raises(AssertionError):
        check_visits(made, graph, replace(found, kept=(*found.kept, found.kept[0])))
