"""Random schedules: what is loaded, for what every hole then holds, what a store leaves alone, against enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from tests.domain.arrays import At, Ints, evaluate
from tests.tma import wide
from tests.tma.generate import POINTS, Schedule, schedule, symbolic

from texpr.affine.expr import Sym
from texpr.affine.facts import Known
from texpr.domain.correctness.holes import WEAK, Strong
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.resize import Resize
from texpr.domain.validity import sizes_of
from texpr.domain.visits import Visits, visits
from texpr.tma.boxing import Part, Views
from texpr.tma.correctness import Level, Plain, Redirected, StoreLowering, analysis, lower_load, lower_store
from texpr.tma.elements import ELEMENTS
from texpr.tma.execute import execute, load
from texpr.tma.model import Copy, Refusal, plan
from texpr.tma.reference import Direction
from texpr.tma.swizzle import Swizzle

INT = ELEMENTS["int32"]
Bools = npt.NDArray[np.bool_]
SHORT = range(250)


def planned(made: Schedule) -> Copy | Refusal:
    return plan(made.memory, made.bulk, INT)


Draw = Callable[[int], Schedule]


def copies(seeds: range, draw: Draw = schedule) -> Iterator[tuple[int, Schedule, Copy]]:
    for seed in seeds:
        made = draw(seed)
        copy = planned(made)
        if isinstance(copy, Copy):
            yield seed, made, copy


def contents(made: Schedule) -> tuple[Visits, np.ndarray, np.ndarray]:
    """All positions; the tensor, whose elements are 1, 2, …; what each position is of the tensor, -1 for a hole."""
    found = visits(made.memory.graph)
    strides = np.array([s.constant for s in made.memory.strides if s is not None], np.int64)
    where = np.where(found.visited, (found.logical * strides[:, None]).sum(axis=0), -1)
    return found, np.arange(1, made.extent + 1, dtype=np.int32), where


def loaded(copy: Copy, lowering: object, tensor: np.ndarray) -> np.ndarray:
    return load(copy, lowering, tensor.view(np.uint8)).view(np.int32)  # type: ignore[arg-type]


def cuts(made: Schedule) -> bool:
    return any(isinstance(t, Resize) and min(t.left.constant, t.right.constant) < 0 for t in made.memory.graph.transforms)


def check_loads(seeds: range, draw: Draw = schedule) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed, made, copy in copies(seeds, draw):
        found, tensor, where = contents(made)
        items, holes = found.visited, ~found.visited
        plain = loaded(copy, Plain(), tensor)
        weak = lower_load(copy, WEAK)
        assert isinstance(weak, Plain)
        assert (plain[items] == tensor[where[items]]).all(), seed  # theorem 1
        assert isinstance(lower_load(copy, Strong(7)), Refusal) == bool(holes.any()) or cuts(made), seed
        strong = lower_load(copy, Strong(0))
        level = analysis(copy).level
        if isinstance(strong, Refusal):
            below = copy.tile.holes > 0
            assert below or level is Level.UNACHIEVABLE
            tiles = (-1, prod(leaf.extent.constant for leaf in copy.tile.graph.leaves))
            bad = (plain != 0) & holes
            mixed = (bad.reshape(tiles).any(axis=1)) & (items.reshape(tiles).any(axis=1))
            assert bad.any() if below else mixed.any() or cuts(made), seed
            seen["below" if below else "mixed"] += 1
        else:
            got = loaded(copy, strong, tensor)
            assert (got[items] == tensor[where[items]]).all(), seed
            assert (got[holes] == 0).all(), seed
            seen[f"{level.name}{' with holes' if holes.any() else ''}"] += 1
    return seen


def test_loads() -> None:
    seen = check_loads(SHORT)
    assert min(seen[k] for k in ("below", "mixed", "FREE", "FREE with holes", "PREDICATED with holes")) >= 5, seen


@pytest.mark.long
def test_many_loads() -> None:
    check_loads(range(1000, 9000))


def check_protected(seeds: range, draw: Draw = schedule) -> None:
    """Theorem 4, at every index of the leaves: with the others in bounds, the engine's test puts the protected ones in bounds.

    Only what lies in the tile is of interest; holes below it are never written. Boxes that are alone need a
    coordinate that is not negative as well, which then is among the needed predicates.
    """
    count = 0
    for seed, _, copy in copies(seeds, draw):
        graph, found = copy.graph, analysis(copy)
        names = [leaf.sym for leaf in graph.leaves]
        shape = [leaf.extent.constant for leaf in graph.leaves]
        at = dict(zip(names, np.indices(shape).reshape(len(shape), -1), strict=True))
        everywhere = np.zeros(prod(shape), np.int64)
        index = {d: everywhere + evaluate(graph.indices()[d.sym], at) for d in _below(copy)}
        inside = {d: (at >= 0) & (at < d.extent.constant) for d, at in index.items()}
        given = [_engine(copy, at, index), *(ok for d, ok in inside.items() if d not in found.protected)]
        tile = {d: everywhere + evaluate(graph.indices()[d.sym], at) for d in copy.tile.graph.domains()}
        given += [(at >= 0) & (at < d.extent.constant) for d, at in tile.items()]
        given += [everywhere + evaluate(each.margin, at) >= 0 for each in found.needed]
        assert not (np.logical_and.reduce(given) & ~np.logical_and.reduce(list(inside.values()))).any(), seed
        count += 1
    assert count > 50


def _below(copy: Copy) -> list[IterDomain]:
    """The TMA domain and all that follows from it, but for what follows inside the tile."""
    reached = list(copy.domain)
    for transform in copy.graph.transforms:
        if all(d in reached for d in transform.inputs) and transform not in copy.tile.graph.transforms:
            reached += transform.outputs
    return reached


def _engine(copy: Copy, at: At, index: dict[IterDomain, Ints]) -> Bools:
    """What the engine tests of each element, in each dimension: the coordinate, and so many steps more as the tile has it."""
    tests: list[Bools] = []
    for each in copy.dimensions:
        root = each.parts[0].root
        if len(each.parts) > 1:
            total, weight = np.zeros_like(next(iter(index.values()))), 1
            for part in reversed(each.parts):
                total, weight = total + (index[part.domain] + part.first.constant) * weight, weight * part.size.constant
        else:
            total = evaluate(each.coordinate, at)
            if root is not None:
                split = copy.boxes.strided.get(root)
                top = root if split is None else split.outer
                total = total + evaluate(copy.graph.indices()[top.sym], at) * each.element_stride.constant
        tests += [total >= 0, total < each.size.constant]
    return np.logical_and.reduce([np.broadcast_to(test, next(iter(index.values())).shape) for test in tests])


def test_protected() -> None:
    check_protected(SHORT)


def check_stores(seeds: range, draw: Draw = schedule) -> int:
    """A store writes every item, and nothing else, whatever lies in holes."""
    count = 0
    for seed, made, copy in copies(seeds, draw):
        lowered = lower_store(copy)
        if isinstance(lowered, Refusal):
            assert analysis(copy).level is Level.UNACHIEVABLE
            continue
        found, tensor, where = contents(made)
        shared = np.arange(1000, 1000 + found.visited.size, dtype=np.int32)
        expected = np.zeros_like(tensor)
        expected[where[found.visited]] = shared[found.visited]
        got = np.zeros_like(tensor)
        execute(copy, lowered.lowering, Direction.STORE, got.view(np.uint8), shared.view(np.uint8))
        assert (got == expected).all(), seed
        size = copy.dimensions[0].size.constant * INT.size
        assert bool(lowered.obligations) == (size % 16 != 0)
        count += 1
    return count


def test_stores() -> None:
    assert check_stores(SHORT) > 150


@pytest.mark.long
def test_many_stores() -> None:
    check_stores(range(1000, 5000))


def check_wide(seeds: range) -> None:
    """What a graph's own indices say, or a refusal: also of merges against memory order and of splits that are too long."""
    seen = check_loads(seeds, wide.schedule)
    assert min(seen[k] for k in ("below", "FREE", "FREE with holes", "PREDICATED with holes")) >= 5, seen
    check_protected(seeds, wide.schedule)
    assert check_stores(seeds, wide.schedule) > len(seeds) // 3


def test_wide_graphs() -> None:
    check_wide(range(250))


@pytest.mark.long
def test_many_wide_graphs() -> None:
    check_wide(range(1000, 6000))


def check_symbolic(seeds: range) -> Counter[str]:
    """What is planned for every size is right at each: items, and holes if the lowering is strong; and stores."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        made = schedule(seed)
        memory = symbolic(made)
        copy = plan(memory, made.bulk, INT, Known({name: (1, None) for name in sizes_of(memory.graph)}))
        if isinstance(copy, Refusal):
            continue
        strong, stored = lower_load(copy, Strong(0)), lower_store(copy)
        seen["strong" if not isinstance(strong, Refusal) else "weak"] += 1
        for values in ((1, 1, 1), (2, 1, 3), (5, 4, 2), (7, 9, 3), (12, 6, 5)):
            sizes = dict(zip((Sym(f"N{at}") for at in range(3)), values, strict=True))
            extents = [d.extent.evaluate(sizes) for d in memory.graph.domains()]
            if min(extents) < 0 or prod(leaf.extent.evaluate(sizes) for leaf in memory.graph.leaves) > 8 * POINTS:
                continue
            check_sizes(copy, strong, stored, sizes, seed)
            seen["sizes"] += 1
    return seen


def check_sizes(copy: Copy, strong: object, stored: object, sizes: dict[Sym, int], seed: int) -> None:
    found = visits(copy.graph, sizes)
    items, holes = found.visited, ~found.visited
    shape = [d.extent.evaluate(sizes) for d in copy.graph.logical]
    strides = np.array([prod(shape[at + 1 :]) for at in range(len(shape))], np.int64)
    where = (found.logical * strides[:, None]).sum(axis=0)
    tensor = np.arange(1, prod(shape) + 1, dtype=np.int32)
    plain = load(copy, Plain(), tensor.view(np.uint8), sizes).view(np.int32)
    assert (plain[items] == tensor[where[items]]).all(), (seed, sizes)
    if isinstance(strong, Plain | Redirected):
        got = load(copy, strong, tensor.view(np.uint8), sizes).view(np.int32)
        assert (got[items] == tensor[where[items]]).all(), (seed, sizes)
        assert (got[holes] == 0).all(), (seed, sizes)
    if isinstance(stored, StoreLowering):
        shared = np.arange(1000, 1000 + found.visited.size, dtype=np.int32)
        expected, got = np.zeros_like(tensor), np.zeros_like(tensor)
        expected[where[items]] = shared[items]
        execute(copy, stored.lowering, Direction.STORE, got.view(np.uint8), shared.view(np.uint8), sizes)
        assert (got == expected).all(), (seed, sizes)


def test_every_size() -> None:
    seen = check_symbolic(range(60))
    assert min(seen["strong"], seen["weak"]) >= 5, seen
    assert seen["sizes"] > 100, seen


@pytest.mark.long
def test_many_at_every_size() -> None:
    check_symbolic(range(1000, 4000))


def test_few_schedules_are_refused() -> None:
    """Those that are name an IterDomain of the graph and what would help."""
    refused = [(made, copy) for made, copy in ((m, planned(m)) for m in map(schedule, SHORT)) if isinstance(copy, Refusal)]
    assert 10 < len(refused) < 100
    for made, refusal in refused:
        assert refusal.domain in made.memory.graph.domains()
        assert refusal.reason and refusal.helps


PLANTED: dict[str, tuple[str, object]] = {
    "all are protected": ("tma.correctness._protected", lambda copy, below, alone, context: frozenset(copy.graph.domains())),
    "splits make no holes": ("domain.transforms.split.Split.holes", lambda self, proofs: iter(())),
    "resizes make no holes": ("domain.transforms.resize.Resize.holes", lambda self, proofs: iter(())),
    "a remainder is out with the whole": (
        "domain.transforms.split.Split.outside",
        lambda self, known: ((self.input, self.inner),),
    ),
    "every box is alone": ("tma.correctness._alone", lambda copy, context: {part.root: None for part in _boxed_parts(copy)}),
    "every split is a view": ("tma.boxing.Context.divides", lambda self, n, value: True),
    "room does not move coordinates": (
        "tma.boxing.Views.shift",
        lambda self, before, left, right, after: _without_shift(self, before, after),
    ),
    "the tile always fits": ("tma.tile._swizzle", lambda order, index, place, size: Swizzle.NONE),
}
"""Each with what it replaces."""


def _boxed_parts(copy: Copy) -> list[Part]:
    return [part for dimension in copy.dimensions for part in dimension.parts if part.root is not None]


def _without_shift(views: Views, before: IterDomain, after: IterDomain) -> None:
    part = views.open.pop(before)
    views.open[after] = Part(after, part.size, part.stride)


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, wrong = PLANTED[bug]
    monkeypatch.setattr(f"texpr.{target}", wrong)
    with pytest.raises((AssertionError, IndexError)):
        check_loads(SHORT)
