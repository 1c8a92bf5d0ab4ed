"""Layouts as tables."""

from __future__ import annotations

from texpr.layout.error import LayoutError
from texpr.layout.inttuple import IntTree
from texpr.layout.layout import Layout
from texpr.layout.swizzle import ComposedLayout


def table(layout: Layout | ComposedLayout) -> tuple[tuple[IntTree, ...], ...]:
    """The values: a row for each coordinate of mode 0, a column for each of mode 1; one column for a single mode.

    Raises LayoutError for more than two modes, or sizes that are not constant.
    """
    shape = layout.layout if isinstance(layout, ComposedLayout) else layout
    if shape.rank > 2:
        raise LayoutError("table", f"{shape} has {shape.rank} modes, and a table two", help="group them")
    sizes = [mode.size for mode in shape.modes]
    if not all(isinstance(size, int) for size in sizes):
        raise LayoutError("table", f"{shape} has sizes that are not numbers")
    rows, columns = (*(size for size in sizes if isinstance(size, int)), 1)[:2]
    if len(sizes) == 1:
        return tuple((layout(i),) for i in range(rows))
    return tuple(tuple(layout((i, j)) for j in range(columns)) for i in range(rows))
