"""Layouts as tables: the value at each coordinate, or the thread and value number that holds each element."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.draw.allocation import MOST_CELLS
from texpr.draw.page.grid import Axis, Cell, grid
from texpr.draw.page.picture import Picture, captioned, document
from texpr.draw.page.style import OWNERS
from texpr.layout.inttuple import tree_text
from texpr.layout.layout import Layout
from texpr.layout.swizzle import ComposedLayout
from texpr.layout.table import table


def draw_layout(layout: Layout | ComposedLayout) -> str:
    """The table of a layout as an SVG document: a row for each coordinate of mode 0, a column for each of mode 1.

    Raises LayoutError for more than two modes or symbolic sizes, ValueError for too many cells.
    """
    rows = _values(layout)
    words = "; ".join(" ".join(row) for row in rows)
    return document(layout_picture(layout), f"The layout {layout}", f"{layout}: {words}.")


def layout_picture(layout: Layout | ComposedLayout) -> Picture:
    """The table. Values that are equal modulo the number of colours have one colour; coordinates have none."""
    rows = _values(layout)
    cells = [[Cell(text, OWNERS[int(text) % len(OWNERS)] if text.isdecimal() else "plain") for text in row] for row in rows]
    down, across = Axis.counted("mode 0", len(rows)), Axis.counted("mode 1", len(rows[0]))
    return captioned(str(layout), grid(cells, down, across))


def _values(layout: Layout | ComposedLayout) -> list[list[str]]:
    size = layout.size
    if isinstance(size, int) and size > MOST_CELLS:
        raise ValueError(f"{size} cells are more than a picture can show ({MOST_CELLS})")
    return [[tree_text(value) for value in row] for row in table(layout)]


def draw_thread_value(tile: Sequence[int], tv: Layout) -> str:
    """The holder of each element of a tile as an SVG document, one colour a thread (cyclically).

    `tile`: its sizes, one or two; `tv`: (thread, value) to the element's 1-D coordinate, the first dimension fastest, as
    `texpr.layout.thread_value.thread_value` gives it. Raises ValueError where an element has no holder, or two.
    """
    cells = held(tile, tv)
    words = "; ".join(" ".join(cell.text for cell in row) for row in cells)
    picture = captioned(f"{tv}", grid(cells, Axis.counted("", len(cells)), Axis.counted("", len(cells[0]))))
    return document(picture, f"Threads and values of {tv}", f"{words}.")


def held(tile: Sequence[int], tv: Layout) -> list[list[Cell]]:
    """The cells of a tile, each with its thread and value. Raises ValueError."""
    rows, columns = (*tile, 1)[:2]
    if len(tile) > 2 or rows * columns > MOST_CELLS:
        raise ValueError(f"a tile of {' × '.join(map(str, tile))} makes no picture")
    threads, values = (mode.size for mode in tv.modes) if tv.rank == 2 else (tv.size, 1)
    found: dict[int, Cell] = {}
    for thread in range(_number(threads)):
        for value in range(_number(values)):
            at = tv.offset((thread, value) if tv.rank == 2 else thread)
            if not isinstance(at, int) or at in found or not 0 <= at < rows * columns:
                raise ValueError(f"{tv} holds element {at} of {rows * columns} twice, or not at all")
            found[at] = Cell(f"T{thread} V{value}", OWNERS[thread % len(OWNERS)])
    if len(found) < rows * columns:
        raise ValueError(f"{tv} leaves {rows * columns - len(found)} elements without a thread")
    return [[found[row + rows * column] for column in range(columns)] for row in range(rows)]


def _number(size: object) -> int:
    if not isinstance(size, int):
        raise ValueError(f"{size} is no number")
    return size
