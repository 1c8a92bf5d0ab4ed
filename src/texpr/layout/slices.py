"""Slices: coordinates with some parts fixed and the others open."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from texpr.affine.expr import IntoExpr
from texpr.layout.algebra.coalesce import from_modes
from texpr.layout.error import LayoutError, in_mode
from texpr.layout.inttuple import IntTree, arithmetic_sum
from texpr.layout.layout import Layout


class All(Enum):
    """An open coordinate."""

    ALL = "_"

    def __str__(self) -> str:
        return self.value


ALL = All.ALL
"""An open mode, written `_`."""

Slice: TypeAlias = "IntoExpr | All | tuple[Slice, ...]"
"""A coordinate with open parts, `ALL`."""


def slice_of(layout: Layout, coord: Slice) -> tuple[Layout, IntTree]:
    """`(part, base)`: layout(c) = base + part(open parts of c), for all c that have the fixed parts of `coord`.

    The open modes are side by side in `part`: a single one is not wrapped, and none is 1:0. Raises LayoutError where the
    coordinate does not fit the shape.
    """
    kept, base = _sliced(layout, coord)
    return (kept[0] if len(kept) == 1 else Layout.of(*kept) if kept else from_modes(())), base


def _sliced(layout: Layout, coord: Slice) -> tuple[list[Layout], IntTree]:
    if isinstance(coord, All):
        return [layout], 0
    if not isinstance(coord, tuple):
        return [], layout(coord)
    if layout.is_leaf or len(coord) != layout.rank:
        raise LayoutError("slice", f"a coordinate with {len(coord)} parts does not fit {layout}")
    kept: list[Layout] = []
    base: IntTree = 0
    for place, (mode, part) in enumerate(zip(layout.modes, coord, strict=True)):
        with in_mode(place):
            inner, offset = _sliced(mode, part)
            kept.extend(inner)
            base = arithmetic_sum(base, offset)
    return kept, base
