"""Layouts as tables, and swizzles as maps of banks."""

from __future__ import annotations

from texpr.draw.banks import banks_picture, column_conflicts
from texpr.draw.layout import draw_layout, draw_thread_value, layout_picture
from texpr.draw.page.picture import document, stacked
from texpr.layout.layout import Layout
from texpr.layout.text import parse_composed, parse_layout
from texpr.layout.thread_value import thread_value
from texpr.tma.swizzle import Swizzle

COORDINATES = parse_layout("((2,4),8):((1@0,2@0),1@1)")
SWIZZLED = parse_composed("Sw<3,0,3> o 0 o (8,8):(8,1)")
ROWS, ROW = 16, 128


def coordinate_layout() -> str:
    """A layout whose values are coordinates, as a tensor of coordinates for TMA has them."""
    return draw_layout(COORDINATES)


def swizzled_layout() -> str:
    """Eight rows of eight, plain and swizzled: the column that stood in one place stands in eight."""
    words = f"{SWIZZLED.layout} and {SWIZZLED}"
    pictures = (layout_picture(SWIZZLED.layout), layout_picture(SWIZZLED))
    return document(stacked(pictures), "A layout, and the same with a swizzle", words)


def thread_value_layout() -> str:
    """A warp's 16 × 8 tile: 8 × 4 threads, each with 2 × 2 values."""
    tile, tv = thread_value(Layout((8, 4), (4, 1)), Layout((2, 2), (2, 1)))
    return draw_thread_value([int(str(size)) for size in tile], tv)


def bank_maps() -> str:
    """Sixteen rows under each swizzle whose span is the row."""
    cases = [(ROWS, ROW, Swizzle.NONE), *((ROWS, s.span, s) for s in (Swizzle.B32, Swizzle.B64, Swizzle.B128))]
    words = " ".join(f"{rows} rows of {row} bytes, {s.name}: {column_conflicts(rows, row, s)}." for rows, row, s in cases)
    return document(stacked([banks_picture(*case) for case in cases]), "Rows in the banks of shared memory", words)
