"""Random schedules: what is loaded, for what every hole then holds, what a store leaves alone, against enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from tests.domain.arrays import At, Ints, evaluate
from tests.tma.generate import Schedule, schedule

from texpr.domain.correctness import WEAK, Strong
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.resize import Resize
from texpr.domain.visits import Visits, visits
from texpr.tma.correctness import Level, Plain, analysis, lower_load, lower_store
from texpr.tma.elements import ELEMENTS
from texpr.tma.execute import execute, load
from texpr.tma.model import Copy, Refusal, plan
from texpr.tma.reference import Direction

INT = ELEMENTS["int32"]
Bools = npt.NDArray[np.bool_]
SHORT = range(250)


def planned(made: Schedule) -> Copy | Refusal:
    return plan(made.memory, made.bulk, INT)


def copies(seeds: range) -> Iterator[tuple[int, Schedule, Copy]]:
    for seed in seeds:
        made = schedule(seed)
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


def check_loads(seeds: range) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed, made, copy in copies(seeds):
        found, tensor, where = contents(made)
        items, holes = found.visited, ~found.visited
        plain = loaded(copy, Plain(), tensor)
        weak = lower_load(copy, WEAK)
        assert isinstance(weak, Plain)
        assert (plain[items] == tensor[where[items]]).all(), seed  # theorem 1
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


def check_protected(seeds: range) -> None:
    """Theorem 4, at every index of the leaves: with the others in bounds, the engine's test puts the protected ones in bounds.

    Only what lies in the tile is of interest; holes below it are never written. Boxes that are alone need a
    coordinate that is not negative as well, which then is among the needed predicates.
    """
    count = 0
    for seed, _, copy in copies(seeds):
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


def check_stores(seeds: range) -> int:
    """A store writes every item, and nothing else, whatever lies in holes."""
    count = 0
    for seed, made, copy in copies(seeds):
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


def test_few_schedules_are_refused() -> None:
    """Those that are name an IterDomain of the graph and what would help."""
    refused = [(made, copy) for made, copy in ((m, planned(m)) for m in map(schedule, SHORT)) if isinstance(copy, Refusal)]
    assert 10 < len(refused) < 100
    for made, refusal in refused:
        assert refusal.domain in made.memory.graph.domains()
        assert refusal.reason and refusal.helps


def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If inner outputs of splits counted as protected, some hole would hold data."""
    monkeypatch.setattr("texpr.tma.correctness._protected", lambda copy, below, alone, context: frozenset(copy.graph.domains()))
    with pytest.raises(AssertionError):
        check_loads(SHORT)
