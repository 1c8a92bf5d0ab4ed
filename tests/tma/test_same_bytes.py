"""One copy in two descriptions, a graph of IterDomains and a layout with basis strides: same coordinates, same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tma.generate import Schedule, schedule

from texpr.domain.transforms.merge import Merge
from texpr.layout import LayoutError
from texpr.layout.inttuple import flatten
from texpr.layout.tensor import CoordinateTensor
from texpr.tma.bridge import coordinates_of
from texpr.tma.correctness import Plain
from texpr.tma.elements import ELEMENTS
from texpr.tma.execute import load
from texpr.tma.model import Copy, plan

INT = ELEMENTS["int32"]


def both(seed: int) -> tuple[Schedule, Copy, CoordinateTensor] | None:
    """A copy each dimension of which is one of the tensor's, and its coordinates as a layout, if they are one.

    Not over a merge of dimensions: behind the end of a row the graph goes on in the next one, where the engine fills.
    """
    made = schedule(seed)
    copy = plan(made.memory, made.bulk, INT)
    if not isinstance(copy, Copy) or {d.tested for d in copy.dimensions} != set(copy.graph.logical):
        return None
    if any(isinstance(t, Merge) and set(t.inputs) <= set(copy.graph.logical) for t in copy.graph.transforms):
        return None
    try:
        return made, copy, coordinates_of(made.memory.graph)
    except LayoutError:
        return None


def arithmetic_tuple(tensor: CoordinateTensor, index: tuple[int, ...]) -> tuple[int, ...]:
    """The tensor's coordinate at an index of the leaves."""
    (mode,) = index if len(index) == 1 else (index,)
    found = flatten(tensor(mode))
    return tuple(each if isinstance(each, int) else each.constant for each in found)


def coordinates_agree(seeds: range) -> int:
    """The layout at the loops' indices, where the tile's are 0, is the arithmetic tuple that the instruction is given."""
    count = 0
    for made, copy, tensor in filter(None, map(both, seeds)):
        graph = made.memory.graph
        place = {d: at for at, d in enumerate(graph.logical)}
        shape = [1 if leaf in copy.bulk else leaf.extent.constant for leaf in graph.leaves]
        for index in np.ndindex(*shape):
            at = dict(zip((leaf.sym for leaf in graph.leaves), map(int, index), strict=True))
            found = arithmetic_tuple(tensor, tuple(map(int, index)))
            assert [each.coordinate.evaluate(at) for each in copy.dimensions] == [
                found[place[d.tested]] for d in copy.dimensions
            ]
        count += 1
    return count


def bytes_agree(seeds: range) -> int:
    """The layout at every index of the leaves says which element is there, or that it is outside: what the engine writes."""
    count = 0
    for made, copy, tensor in filter(None, map(both, seeds)):
        if copy.tile.holes:
            continue
        graph = made.memory.graph
        sizes = [d.extent.constant for d in graph.logical]
        strides = [s.constant for s in made.memory.strides if s is not None]
        data = np.arange(1, made.extent + 1, dtype=np.int32)
        expected: list[int] = []
        for index in np.ndindex(*(leaf.extent.constant for leaf in graph.leaves)):
            at = arithmetic_tuple(tensor, tuple(map(int, index)))
            inside = all(0 <= i < n for i, n in zip(at, sizes, strict=True))
            expected.append(int(data[sum(i * s for i, s in zip(at, strides, strict=True))]) if inside else 0)
        assert load(copy, Plain(), data.view(np.uint8)).view(np.int32).tolist() == expected
        count += 1
    return count


def test_coordinates_agree() -> None:
    assert coordinates_agree(range(150)) > 25


def test_bytes_agree() -> None:
    assert bytes_agree(range(120)) > 15


@pytest.mark.long
def test_many_agree() -> None:
    assert coordinates_agree(range(1000, 4000)) > 500
    assert bytes_agree(range(1000, 3000)) > 300
