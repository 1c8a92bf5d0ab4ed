"""Slices, identity layouts and coordinate tensors."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.layout.oracle import nestings, shapes

from texpr.layout import ALL, E, Layout
from texpr.layout.algebra.divide import zipped_divide
from texpr.layout.coordinates import natural
from texpr.layout.inttuple import arithmetic_sum
from texpr.layout.slices import slice_of
from texpr.layout.tensor import CoordinateTensor, identity_layout


def test_identity_layouts_give_back_each_coordinate() -> None:
    for count in (1, 2, 3):
        for sizes in shapes(12, count):
            for shape in nestings(sizes):
                layout = identity_layout(shape)
                for i in range(int(layout.size)):
                    assert layout(i) == natural(i, shape)
    assert str(identity_layout((4, (2, 3)))) == "(4,(2,3)):(1@0,(1@0@1,1@1@1))"


def opened(shape: Any) -> list[Any]:
    """Every way to leave parts open, and fixed parts at 0 and at the end."""
    if not isinstance(shape, tuple):
        return [ALL, 0, shape - 1]
    return [ALL, 1, *product(*map(opened, shape))]


def fill(coord: Any, shape: Any, free: list[Any]) -> Any:
    """The coordinate with its open parts taken from `free` in order."""
    if coord is ALL:
        return free.pop(0)
    return tuple(fill(c, s, free) for c, s in zip(coord, shape, strict=True)) if isinstance(coord, tuple) else coord


def parts(coord: Any, shape: Any) -> list[Any]:
    if coord is ALL:
        return [shape]
    return [p for c, s in zip(coord, shape, strict=True) for p in parts(c, s)] if isinstance(coord, tuple) else []


def test_a_slice_is_the_layout_where_the_rest_is_fixed() -> None:
    for layout in (
        Layout(((2, 3), (4, 2), 3), ((1, 10), (100, 1000), 10000)),
        Layout(((2, 3), (2, 2), 3), ((E(0), E(0) * 5), (E(1, 0), E(1, 1)), E(2))),
    ):
        checked = 0
        for coord in opened(layout.shape):
            part, base = slice_of(layout, coord)
            free = parts(coord, layout.shape)
            for at in product(*(range(Layout(shape).size) for shape in free)):  # type: ignore[arg-type]
                inner = at if len(at) > 1 else at[0] if at else 0
                checked += 1
                whole = layout(fill(coord, layout.shape, list(at)))
                found = arithmetic_sum(base, part(inner))
                assert found == whole or trimmed(found) == trimmed(whole)
        assert checked > 1000


def trimmed(tree: Any) -> Any:
    """An arithmetic tuple without zeros at its ends, which add nothing."""
    if not isinstance(tree, tuple):
        return tree
    entries = [trimmed(each) for each in tree]
    while entries and entries[-1] in (0, ()):
        entries.pop()
    return tuple(entries)


def test_the_seeds_coordinate_tensors() -> None:
    """Strides (1@0, 1@1) give (i, j), and (1@1, 1@0) give (j, i)."""
    for i, j in product(range(4), range(5)):
        assert CoordinateTensor((0, 0), Layout((4, 5), (E(0), E(1))))((i, j)) == (i, j)
        assert CoordinateTensor((0, 0), Layout((4, 5), (E(1), E(0))))((i, j)) == (j, i)


def test_a_tile_of_a_coordinate_tensor_has_its_place_as_base() -> None:
    whole = CoordinateTensor.identity((64, 48))
    tiles = CoordinateTensor(whole.base, zipped_divide(whole.layout, (16, 8)))
    tile = tiles.slice((ALL, (3, 2)))
    assert tile.base == (48, 16)
    assert str(tile.layout) == "(16,8):(1@0,1@1)"
    assert tile((5, 7)) == (53, 23) == tiles(((5, 7), (3, 2)))
    row = tile.slice((5, ALL))
    assert (row.base, str(row.layout)) == ((53, 16), "8:1@1")
    assert whole.composed((Layout(4, 2), ALL))((3, 7)) == (6, 7)
