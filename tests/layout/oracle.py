"""Layouts as lists of values, worked out from their trees alone; and every small layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from random import Random
from typing import Any

from texpr.layout import Basis, Layout, LayoutError

Value = tuple[tuple[tuple[int, ...], int], ...]
"""The places of a value that are not 0, with their numbers."""


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def values(layout: Layout) -> list[Value]:
    """The value at each coordinate, the leftmost leaf fastest."""
    steps = [(d.path, d.coefficient) if isinstance(d, Basis) else ((), d) for d in leaves(layout.stride)]
    found: list[Value] = []
    for backward in product(*(range(size) for size in reversed(leaves(layout.shape)))):
        total: dict[tuple[int, ...], int] = {}
        for at, (path, step) in zip(reversed(backward), steps, strict=True):
            total[path] = total.get(path, 0) + at * step
        found.append(tuple(sorted((path, number) for path, number in total.items() if number)))
    return found


def numbers(layout: Layout) -> list[int]:
    """`values` of a layout with integer strides."""
    return [value[0][1] if value else 0 for value in values(layout)]


def places(tree: Any, path: tuple[int, ...] = ()) -> Value:
    """A value of the product's as one of ours."""
    if isinstance(tree, tuple):
        return tuple(sorted(each for at, part in enumerate(tree) for each in places(part, (*path, at))))
    return ((path, tree),) if tree else ()


def shapes(most: int, count: int, least: int = 1) -> Iterator[tuple[int, ...]]:
    """Every tuple of `count` sizes that make at most `most` together."""
    for sizes in product(range(least, most + 1), repeat=count):
        if prod(sizes) <= most:
            yield sizes


def nestings(flat: Sequence[Any]) -> Iterator[Any]:
    """The leaves as trees of depth at most 2."""
    yield flat[0] if len(flat) == 1 else tuple(flat)
    if len(flat) == 2:
        yield (tuple(flat),)
    if len(flat) == 3:
        yield (tuple(flat[:2]), flat[2])
        yield (flat[0], tuple(flat[1:]))


def layouts(most: int, count: int, strides: Sequence[Any], least: int = 1) -> Iterator[Layout]:
    """Every layout with up to `count` leaves of these strides and `most` elements, in all nestings."""
    for leaf_count in range(1, count + 1):
        for sizes in shapes(most, leaf_count, least):
            for steps in product(strides, repeat=leaf_count):
                for shape, stride in zip(nestings(sizes), nestings(steps), strict=True):
                    yield Layout(shape, stride)


def random_layout(random: Random, most: int, strides: Sequence[int]) -> Layout:
    """A layout of depth at most 3."""
    sizes: list[int] = []
    for _ in range(random.randint(1, 5)):
        size = random.choice((1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 8))
        if prod(sizes) * size <= most:
            sizes.append(size)
    sizes = sizes or [1]
    kind = random.random()
    order = random.sample(range(len(sizes)), len(sizes))
    steps = [random.choice(strides) for _ in sizes]
    if kind < 0.75:  # compact in some order; with gaps, or with modes that repeat, now and then
        filled = random.choice((1, 1, 1, 2))
        for place in order:
            steps[place] = 0 if kind < 0.1 and random.random() < 0.3 else filled
            filled *= sizes[place] * (random.choice((1, 1, 2, 3)) if kind > 0.5 else 1)
    if len(sizes) == 1 and random.random() < 0.5:
        return Layout(sizes[0], steps[0])
    cut = random.randint(0, len(sizes))
    if random.random() < 0.5 or cut in (0, len(sizes)):
        return Layout(tuple(sizes), tuple(steps))
    return Layout((tuple(sizes[:cut]), *sizes[cut:]), (tuple(steps[:cut]), *steps[cut:]))


def answer(operation: Callable[..., Layout], *args: Any) -> Layout | None:
    """What an operation gives; None where it is refused."""
    try:
        return operation(*args)
    except LayoutError:
        return None
