"""Strides, vectors and boxes, against the addresses of all items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product
from random import Random

import pytest
from tests.domain.generate import Recipe, Size, recipe

from texpr.affine.expr import Expr, IntoExpr, Sym, expr, sym
from texpr.affine.facts import Known, multiple_of
from texpr.domain import DomainGraph, contiguity
from texpr.domain.contiguity import Memory, box_over_merge, merged_stride, stride, takes_vectors, vector_width
from texpr.domain.transforms.swizzle import Xor

K, M, N, n, lda = sym("K"), sym("M"), sym("N"), sym("n"), sym("lda")
Addresses = Mapping[tuple[int, ...], int]


def memory(graph: DomainGraph, *strides: IntoExpr | None) -> Memory:
    return Memory(graph, tuple(None if s is None else expr(s) for s in strides))


def two(outer: IntoExpr, inner: IntoExpr) -> DomainGraph:
    return DomainGraph.of(("x", outer), ("y", inner))


# The oracle: where each item lies, leaf index by leaf index


def addresses(graph: DomainGraph, strides: tuple[int, ...], sizes: Mapping[Sym, int]) -> dict[tuple[int, ...], int]:
    """The address of the item at each valid index of the leaves."""
    index, found = graph.indices(), dict[tuple[int, ...], int]()
    extents = {d.sym: d.extent.evaluate(sizes) for d in graph.domains()}
    for point in product(*(range(extents[leaf.sym]) for leaf in graph.leaves)):
        given = {**dict(zip((leaf.sym for leaf in graph.leaves), point, strict=True)), **sizes}
        at = {s: e.evaluate(given) for s, e in index.items()}
        if all(0 <= at[d.sym] < extents[d.sym] for d in graph.domains()):
            found[point] = sum(s * at[d.sym] for s, d in zip(strides, graph.logical, strict=True))
    return found


def moved(point: tuple[int, ...], at: int, by: int) -> tuple[int, ...]:
    return (*point[:at], point[at] + by, *point[at + 1 :])


def steps(found: Addresses, at: int) -> set[int]:
    """By how much steps along leaf number `at` move, from item to item."""
    return {found[moved(p, at, 1)] - address for p, address in found.items() if moved(p, at, 1) in found}


def takes(found: Addresses, at: int, width: int) -> bool:
    """Whether each aligned group along leaf number `at` is all items, one after the other in memory, or no item."""
    groups = {moved(p, at, -(p[at] % width)) for p in found}
    return all(
        moved(group, at, lane) in found and found[moved(group, at, lane)] == found[group] + lane
        for group in groups
        if group in found
        for lane in range(width)
    ) and all(group in found for group in groups)


# Strides


def test_dense_rows_are_contiguous() -> None:
    dense = Memory.dense(two(M, N))
    assert dense.strides == (N, expr(1))
    assert (stride(dense, "x"), stride(dense, "y")) == (N, expr(1))
    assert merged_stride(dense, "x", "y") is expr(1)
    assert Memory.dense(DomainGraph.of()).strides == ()


def test_rows_with_a_pitch_are_not() -> None:
    pitched = memory(two(M, N), lda, 1)
    assert (stride(pitched, "x"), stride(pitched, "y")) == (lda, expr(1))
    assert merged_stride(pitched, "x", "y") is None


def test_an_unknown_stride_is_none() -> None:
    unknown = memory(two(M, N), None, 1)
    assert stride(unknown, "x") is None
    assert stride(unknown, "y") is expr(1)
    assert merged_stride(unknown, "x", "y") is None
    assert merged_stride(memory(two(1, N), None, 1), "x", "y") is expr(1)


def test_strides_go_through_splits_and_resizes() -> None:
    graph = DomainGraph.of(("i", N)).resize("i", 1, 2, "r").split("r", 4, ("o", "t")).split("o", n, ("p", "q"))
    held = memory(graph, 3)
    assert [stride(held, leaf) for leaf in ("p", "q", "t")] == [12 * n, expr(12), expr(3)]
    assert merged_stride(held, "q", "t") is expr(3)
    assert merged_stride(held, "t", "q") is None


def test_one_index_has_any_stride() -> None:
    assert stride(memory(two(1, 5), None, 1), "x") is expr(0)


def test_what_lies_beside_a_swizzle_stays_contiguous() -> None:
    graph = DomainGraph.of(("r", 8), ("c", 64)).split("c", 8, ("chunk", "v"))
    held = Memory.dense(graph.swizzle("r", "chunk", Xor(3), ("r2", "c2")))
    assert [stride(held, leaf) for leaf in ("r2", "c2", "v")] == [None, None, expr(1)]
    assert [vector_width(held, leaf) for leaf in ("r2", "c2", "v")] == [1, 1, 8]
    assert merged_stride(held, "c2", "v") is None


# Vectors and boxes over merged IterDomains


@pytest.mark.parametrize("outer", [0, 1, 2, 3])
@pytest.mark.parametrize("pitch", [0, 1, 7])
def test_a_box_over_a_merge_is_allowed_exactly_where_the_theorem_says(outer: int, pitch: int) -> None:
    for inner, factor in product(range(8), range(1, 9)):
        held = memory(two(outer, inner), inner + pitch, 1)
        split = held.graph.merge("x", "y", "m").split("m", factor, ("g", "t"))
        found = addresses(split, (inner + pitch, 1), {})
        discontiguous = pitch != 0 and outer >= 2 and inner >= 2
        allowed = inner % factor == 0 or outer <= 1 or not discontiguous
        assert box_over_merge(held, "x", "y", factor) == allowed
        assert (len(steps(found, 1) | ({1} if inner > 1 and outer else set())) <= 1) == allowed
        vectors = takes_vectors(Memory(held.graph.merge("x", "y", "m"), held.strides), "m", factor)
        merged = addresses(held.graph.merge("x", "y", "m"), (inner + pitch, 1), {})
        assert vectors == takes(merged, 0, factor) or not merged  # what has no items takes any vectors, unproved
        if discontiguous:
            assert vectors == (inner % factor == 0)


@pytest.mark.parametrize(
    ("outer", "inner", "factor", "known", "allowed", "width"),
    [
        (M, 8 * K, 8, Known({}), True, 8),
        (M, N, 8, Known({}, [multiple_of(N, 8)]), True, 8),
        (M, N, 4, Known({}, [multiple_of(N, 8)]), True, 8),
        (M, K * n, n, Known({}), True, 1),
        (1, N, n, Known({}), True, 1),
        (M, N, n, Known({Sym("M"): (0, 1)}), True, 1),
        (M, N, 8, Known({}), False, 1),
        (M, N, 16, Known({}, [multiple_of(N, 8)]), False, 8),
        (M, 12, 8, Known({}), False, 4),
        (2, N, n, Known({}), False, 1),
    ],
    ids=lambda value: None if isinstance(value, Known) else str(value),
)
def test_symbolic_boxes_and_vectors(
    outer: IntoExpr, inner: IntoExpr, factor: IntoExpr, known: Known, allowed: bool, width: int
) -> None:
    held = memory(two(outer, inner), None, 1)
    assert box_over_merge(held, "x", "y", factor, known) == allowed
    assert vector_width(held, "y", known, (8, 4, 2)) == width
    merged = Memory(held.graph.merge("x", "y", "m"), held.strides)
    assert vector_width(merged, "m", known, (8, 4, 2)) == width


def test_a_group_must_not_be_part_hole() -> None:
    padded = Memory.dense(DomainGraph.of(("i", 6)).resize("i", 0, 2, "r"))
    assert [takes_vectors(padded, "r", width) for width in (1, 2, 3, 4, 6, 8)] == [True, True, True, False, True, False]
    shifted = Memory.dense(DomainGraph.of(("i", 6)).resize("i", 2, 0, "r"))
    assert [takes_vectors(shifted, "r", width) for width in (2, 4, 8)] == [True, False, False]


# Random graphs


def fixed(made: Recipe) -> Recipe:
    """The recipe with a number for each of its named sizes."""
    logical = tuple((name, Size("", (s.values[min(1, len(s.values) - 1)],))) for name, s in made.logical)
    return Recipe(logical, made.steps)


def strides_of(made: Recipe, random: Random) -> tuple[int, ...]:
    """Dense, or with gaps, or in another order."""
    extents, total, found = made.extents({}), 1, dict[str, int]()
    names = [name for name, _ in made.logical]
    for name in random.choice((names[::-1], names)):
        found[name] = total
        total = total * extents[name] + random.choice((0, 0, 0, 3))
    return tuple(found[name] for name in names)


def check(seed: int, statistics: Counter[str]) -> None:
    random = Random(seed)
    made = fixed(recipe(seed))
    made = Recipe(made.logical, made.steps[: random.randint(0, 6)])
    graph, strides = made.graph(), strides_of(made, random)
    held, found = memory(graph, *strides), addresses(graph, strides, {})
    unknown = random.randrange(len(strides))
    hidden = Memory(graph, tuple(None if k == unknown else s for k, s in enumerate(held.strides)))
    others = [addresses(graph, tuple(99991 if k == unknown else s for k, s in enumerate(strides)), {}), found]
    for at, leaf in enumerate(graph.leaves):
        name = leaf.sym.name
        said, seen = stride(held, name), steps(found, at)
        assert (said is None) == (len(seen) > 1)
        assert said is None or seen <= {said.constant}
        blind = stride(hidden, name)
        assert blind is None or all(steps(each, at) <= {blind.constant} for each in others)
        widths = [width for width in range(1, 7) if takes(found, at, width)]
        assert vector_width(held, name, widths=range(6, 1, -1)) == max(widths) or not found
        statistics["a stride" if said is not None else "none"] += 1
        statistics["vectors" if max(widths) > 1 else "scalars"] += 1


def test_random_graphs() -> None:
    statistics: Counter[str] = Counter()
    for seed in range(10):
        check(seed, statistics)
    assert min(statistics[each] for each in ("a stride", "none", "vectors", "scalars")) > 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2000, 2400, 20))
def test_more_random_graphs(seed: int) -> None:
    for each in range(seed, seed + 20):
        check(each, Counter())


def check_symbolic(seed: int, statistics: Counter[str]) -> None:
    """What is said for all sizes holds at each."""
    made = recipe(seed)
    made = Recipe(made.logical, made.steps[: seed % 6])
    graph, known = made.graph(), made.known()
    held = Memory.dense(graph)
    for at, leaf in enumerate(graph.leaves):
        said = stride(held, leaf.sym.name, known)
        width = vector_width(held, leaf.sym.name, known, range(6, 1, -1))
        statistics["a stride" if said is not None else "none"] += 1
        statistics["vectors" if width > 1 else "scalars"] += 1
        for sizes in made.sizes():
            given = {Sym(name): value for name, value in sizes.items()}
            found = addresses(graph, tuple(s.evaluate(given) for s in held.strides if isinstance(s, Expr)), given)
            assert said is None or steps(found, at) <= {said.evaluate(given)}
            assert takes(found, at, width)


def test_random_graphs_with_symbolic_sizes() -> None:
    statistics: Counter[str] = Counter()
    for seed in range(8):
        check_symbolic(seed, statistics)
    assert min(statistics.values()) > 1, statistics


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3000, 3200, 20))
def test_more_random_graphs_with_symbolic_sizes(seed: int) -> None:
    for each in range(seed, seed + 20):
        check_symbolic(each, Counter())


# Planted


def test_a_box_by_the_wrong_premise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divisibility of the whole, 2 · 6 by 4, does not make a box of 4 contiguous: its second crosses a row."""

    def wrong(outer: Expr, inner: Expr, factor: Expr, known: Known) -> bool:
        return (outer * inner % factor) is expr(0)

    held = memory(two(2, 6), 9, 1)
    assert not box_over_merge(held, "x", "y", 4)
    monkeypatch.setattr(contiguity, "merge_and_split_commute", wrong)
    assert box_over_merge(held, "x", "y", 4)
    split = held.graph.merge("x", "y", "m").split("m", 4, ("g", "t"))
    assert steps(addresses(split, (9, 1), {}), 1) == {1, 4}
