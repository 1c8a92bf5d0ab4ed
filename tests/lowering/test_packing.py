"""Packing against every way to put blocks at multiples of their alignment, of small sizes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, product

from texpr.lowering.place.packing import pack


def least(sizes: Sequence[int], aligns: Sequence[int], apart: Sequence[tuple[int, int]], most: int) -> int:
    """The fewest bytes, by trying every offset below `most`."""
    best = most
    for offsets in product(*(range(0, most - size + 1, align) for size, align in zip(sizes, aligns, strict=True))):
        total = max(at + size for at, size in zip(offsets, sizes, strict=True))
        if total < best and right(offsets, sizes, apart):
            best = total
    return best


def right(offsets: Sequence[int], sizes: Sequence[int], apart: Sequence[tuple[int, int]]) -> bool:
    return all(offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a] for a, b in apart)


def test_nothing_is_packed_better() -> None:
    chooser = random.Random(5)
    for _ in range(60):
        count = chooser.randint(1, 4)
        sizes = [chooser.randint(1, 6) for _ in range(count)]
        aligns = [chooser.choice([1, 2, 4]) for _ in range(count)]
        apart = [pair for pair in combinations(range(count), 2) if chooser.random() < 0.6]
        packed = pack(sizes, aligns, apart)
        assert right(packed.offsets, sizes, apart)
        assert all(at % align == 0 for at, align in zip(packed.offsets, aligns, strict=True))
        assert packed.total == max(at + size for at, size in zip(packed.offsets, sizes, strict=True))
        assert packed.bound == packed.total == least(sizes, aligns, apart, packed.total)


def test_what_the_largest_first_does_not_find() -> None:
    """Blocks of a ring, of which neighbours live at one time: the first fit needs more than the search."""
    sizes = [4, 3, 4, 3, 5]
    ring = [(a, (a + 1) % 5) for a in range(5)]
    packed = pack(sizes, [1] * 5, ring)
    assert packed.total == packed.bound == least(sizes, [1] * 5, ring, 13)


def test_at_the_limit_the_best_is_told_with_its_gap() -> None:
    sizes = [7 + each % 5 for each in range(14)]
    apart = [(a, b) for a, b in combinations(range(14), 2) if (a * b + a + b) % 3]
    packed = pack(sizes, [4] * 14, apart, limit=50)
    assert right(packed.offsets, sizes, apart)
    assert packed.bound <= packed.total and packed.tried <= 51


def test_nothing_to_pack() -> None:
    assert (pack([], [], []).total, pack([5], [16], []).offsets) == (0, (0,))
