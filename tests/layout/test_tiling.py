"""Divides, products, tiles of shapes and thread-value layouts: their meaning at every small layout."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations, product
from math import prod

import pytest
from tests.layout import laws
from tests.layout.oracle import answer, layouts, leaves, numbers, values

from texpr.layout import ALL, E, Layout, LayoutError
from texpr.layout.algebra.compose import Tiler
from texpr.layout.algebra.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from texpr.layout.algebra.product import (
    blocked_product,
    flat_product,
    logical_product,
    ordered_layout,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from texpr.layout.modes import append, flat, group, padded, select, ungroup
from texpr.layout.thread_value import thread_value


def check_divides(first: Iterable[Layout], tiles: list[Layout]) -> int:
    answered = 0
    for a in first:
        for b in tiles:
            r = answer(logical_divide, a, b)
            if r is not None:
                answered += 1
                assert laws.divides(a, b, r), (a, b, r)
    return answered


def check_products(blocks: Iterable[Layout], copies: list[Layout]) -> int:
    answered = 0
    for a in blocks:
        for b in copies:
            r = answer(logical_product, a, b)
            if r is not None:
                answered += 1
                assert laws.multiplies(a, b, r), (a, b, r)
    return answered


def test_logical_divide() -> None:
    assert check_divides(layouts(12, 2, (1, 100), least=2), list(layouts(6, 2, (0, 1, 2, 3, 4), least=2))) > 300


def test_logical_product() -> None:
    assert check_products(layouts(6, 2, (0, 1, 2, 3, 4, 8), least=2), list(layouts(4, 2, (0, 1, 2, 3), least=2))) > 2000


@pytest.mark.long
def test_divides_and_products_up_to_24() -> None:
    assert check_divides(layouts(24, 3, (1, 100), least=2), list(layouts(12, 2, range(7), least=2))) > 10000
    assert check_products(layouts(12, 3, (0, 1, 2, 4, 6), least=2), list(layouts(6, 2, range(4), least=2))) > 10000


def test_divisible_sizes_are_divided_and_others_refused() -> None:
    """By a number: exactly where it divides."""
    for size, n in product(range(1, 25), repeat=2):
        assert (answer(logical_divide, Layout(size, 3), n) is not None) == (size % n == 0)


TENSOR = Layout((6, (2, 4), 5), (1, (100, 7), 1000))
TILERS: list[tuple[Tiler, ...]] = [
    (Layout(3, 2), Layout((2, 2), (1, 4))),
    (3, 4),
    (ALL, 2),
    (2, (2, 2), 5),
    (Layout(2, 3), ALL, 1),
]


def test_by_mode_each_mode_is_divided_alone() -> None:
    r = logical_divide(TENSOR, (Layout(3, 2), Layout((2, 2), (1, 4))))
    assert [str(m) for m in r.modes[2:]] == ["5:1000"]
    assert laws.divides(TENSOR[0], Layout(3, 2), r[0])
    assert laws.divides(TENSOR[1], Layout((2, 2), (1, 4)), r[1])
    assert logical_divide(TENSOR, (ALL, 2))[0] == TENSOR[0]


@pytest.mark.parametrize("tiler", TILERS, ids=str)
def test_divides_hold_the_same_elements_in_other_orders(tiler: tuple[Tiler, ...]) -> None:
    logical, whole = logical_divide(TENSOR, tiler), sorted(values(TENSOR))
    assert sorted(values(logical)) == whole
    tiled, spread, zipped = tiled_divide(TENSOR, tiler), flat_divide(TENSOR, tiler), zipped_divide(TENSOR, tiler)
    assert zipped.rank == 2
    assert tiled[0] == zipped[0] and tiled.modes[1:] == zipped[1].modes
    assert spread.modes == (*zipped[0].modes, *zipped[1].modes)
    for each in (zipped, tiled, spread):
        assert sorted(values(each)) == whole
    assert prod(leaves(zipped[0].shape)) * prod(leaves(zipped[1].shape)) == len(whole)


def test_a_zipped_divide_has_tile_and_place() -> None:
    """A 4 by 8 matrix in tiles of 2 by 4: the first mode is the tile's element, the second the tile."""
    r = zipped_divide(Layout((4, 8), (E(0), E(1))), (2, 4))
    for i, j, p, q in product(range(2), range(4), range(2), range(2)):
        assert r(((i, j), (p, q))) == (2 * p + i, 4 * q + j)


def test_products_hold_the_same_elements_in_other_orders() -> None:
    block, tiler = Layout((2, 5), (5, 1)), (Layout(3, 5), Layout(4, 6))
    whole = sorted(values(logical_product(block, tiler)))
    zipped = zipped_product(block, tiler)
    assert zipped[0] == block
    assert tiled_product(block, tiler).modes == (zipped[0], *zipped[1].modes)
    assert flat_product(block, tiler).modes == (*zipped[0].modes, *zipped[1].modes)
    assert sorted(values(zipped)) == whole


def test_blocked_and_raked_products() -> None:
    """Copy (p, q) of the block holds the numbers from 6 · copies(p, q) on, in blocks or interleaved."""
    for block, copies in product((Layout((2, 3)), Layout((2, 3), (3, 1))), (Layout((4, 2)), Layout((4, 2), (2, 1)))):
        blocked, raked = blocked_product(block, copies), raked_product(block, copies)
        for i, j, p, q in product(range(2), range(3), range(4), range(2)):
            value = block((i, j)) + 6 * copies((p, q))
            assert blocked((i + 2 * p, j + 3 * q)) == value
            assert raked((p + 4 * i, q + 2 * j)) == value
    assert blocked_product(Layout(4), Layout(3)) == Layout((4, 3), (1, 4))
    assert raked_product(Layout((4, 1)), Layout((2, 3))) == Layout(((2, 4), (3, 1)), ((4, 1), (8, 4)))


def test_tile_to_shape() -> None:
    """Element (i, j) lies in copy (i / 2, j / 3), at (i mod 2, j mod 3); copies follow each other in the given order."""
    block = Layout((2, 3), (3, 1))
    for order in permutations((0, 1)):
        r = tile_to_shape(block, (8, 9), order)
        assert sorted(numbers(r)) == list(range(72))
        for i, j in product(range(8), range(9)):
            copy = i // 2 + 4 * (j // 3) if order == (0, 1) else j // 3 + 3 * (i // 2)
            assert r((i, j)) == block((i % 2, j % 3)) + 6 * copy
    assert tile_to_shape(block, (8, 9)) == tile_to_shape(block, (8, 9), (0, 1))
    deep = tile_to_shape(block, (4, 6, 5))
    assert sorted(numbers(deep)) == list(range(120))


def test_ordered_layouts() -> None:
    for order in permutations(range(3)):
        r = ordered_layout((4, 3, 5), order)
        for at, stride in enumerate(leaves(r.stride)):
            assert stride == prod((4, 3, 5)[k] for k in range(3) if order[k] < order[at])


@pytest.mark.parametrize(
    ("threads", "block"),
    [
        (Layout((4, 8), (8, 1)), Layout((2, 2), (1, 2))),
        (Layout((4, 8)), Layout((1, 4))),
        (Layout(32), Layout(4)),
        (Layout(((2, 2), 8), ((1, 16), 2)), Layout((2, (1, 2)), (2, (0, 1)))),
    ],
    ids=str,
)
def test_a_thread_holds_a_block(threads: Layout, block: Layout) -> None:
    """Thread threads(i, j) holds, as value block(x, y), the element at (x + X · i, y + Y · j): a block each, side by side."""
    tile, tv = thread_value(threads, block)
    rows = tile[0]
    assert isinstance(rows, int)
    assert sorted(numbers(tv)) == list(range(len(numbers(threads)) * len(numbers(block))))
    if threads.is_leaf:
        assert all(tv((threads(i), block(x))) == x + 4 * i for i in range(32) for x in range(4))
        return
    (height, width), (tall, wide) = [[prod(leaves(m.shape)) for m in each.modes] for each in (threads, block)]
    assert tile == (height * tall, width * wide)
    for i, j, x, y in product(range(height), range(width), range(tall), range(wide)):
        assert tv((threads((i, j)), block((x, y)))) == (x + tall * i) + rows * (y + wide * j)


def test_modes_rearranged() -> None:
    a = Layout(((2, 3), 4, (5, 6)), ((1, 2), 10, (100, 1000)))
    assert flat(a) == Layout((2, 3, 4, 5, 6), (1, 2, 10, 100, 1000))
    assert numbers(flat(a)) == numbers(a)
    assert numbers(group(a, 1, 3)) == numbers(a)
    assert group(a, 1, 3).shape == ((2, 3), (4, (5, 6)))
    assert ungroup(group(a, 1, 3), 1) == a
    assert append(a, Layout(7, 9))[3] == Layout(7, 9)
    assert padded(Layout(4), 3) == Layout((4, 1, 1), (1, 0, 0))
    assert select(a, 2, 0) == Layout.of(a[2], a[0])
    assert select(a, (2, 1)) == Layout(6, 1000) == a[2, 1]
    assert select(a) == Layout(1, 0)
    with pytest.raises(LayoutError, match="has no mode 3; it has 3"):
        select(a, 3)
