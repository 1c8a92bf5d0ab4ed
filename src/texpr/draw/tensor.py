"""A tensor in global memory with the box of a copy on it, and the resulting tile in shared memory.

Of more than two dimensions the two innermost are shown, at the box's coordinates along the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.draw.page.grid import HIGH, Axis, Cell, Frame, grid
from texpr.draw.page.picture import Picture, beside, captioned, document, legend, line, stacked
from texpr.draw.page.style import TENSOR
from texpr.draw.page.text import CAPTION
from texpr.support.record import Record

MOST = 72
"""The most cells shown along a dimension; of a larger tensor, those around the end of the box."""

_AROUND = 3
_SIZES = ((20, HIGH), (36, 16.0), (MOST, 9.0))
"""The size of cells by the greatest number of them along a side, the same for tensor and tile."""

_WIDE = 900.0
"""The pixels available for a tensor and its tile side by side."""


class Seen(Record):
    """One copy, dimension 0 innermost: sizes of tensor and box, element strides, the box's corner, the row pitch in elements.

    `stores`: whether it is a store.
    """

    sizes: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    corner: tuple[int, ...]
    pitch: int
    stores: bool = False

    @property
    def tile(self) -> tuple[int, ...]:
        """The elements of the tile along each dimension."""
        return tuple(-(-b // e) for b, e in zip(self.box, self.steps, strict=True))

    @property
    def is_outside(self) -> bool:
        """Whether the box is out of bounds along a dimension that is not shown."""
        others = zip(self.corner[2:], self.sizes[2:], strict=True)
        return any(not 0 <= at < size for at, size in others)

    def kind(self, x: int, y: int) -> str:
        """The class of the element at (x, y) of the shown plane, one of `texpr.draw.page.style.TENSOR`."""
        at = (x, y)[: len(self.sizes)]
        if any(not 0 <= i - c < b for i, c, b in zip(at, self.corner, self.box, strict=False)):
            return "value" if self._is_element(at) else "gap"
        if any((i - c) % e for i, c, e in zip(at, self.corner, self.steps, strict=False)):
            return "skipped"
        outside = "left" if self.stores else "zero"
        return "loaded" if self._is_element(at) and not self.is_outside else outside

    @property
    def kinds(self) -> frozenset[str]:
        """The classes of the elements of the box, in the shown plane."""
        wide, high = (*self.box, 1)[:2]
        x, y = (*self.corner, 0)[:2]
        return frozenset(self.kind(x + i, y + j) for i in range(wide) for j in range(high))

    def _is_element(self, at: Sequence[int]) -> bool:
        return all(0 <= i < size for i, size in zip(at, self.sizes, strict=False))


def draw_tensor(copies: Sequence[Seen], title: str) -> str:
    """Each copy with its tile beside it, as an SVG document."""
    words = " ".join(describe(copy) for copy in copies)
    return document(tensor_pictures(copies), title, words)


def describe(copy: Seen) -> str:
    """The copy in words."""
    parts = {"size": copy.sizes, "box": copy.box, "element stride": copy.steps, "corner": copy.corner, "tile": copy.tile}
    return "; ".join(f"{name} ({', '.join(map(str, value))})" for name, value in parts.items()) + "."


def tensor_pictures(copies: Sequence[Seen]) -> Picture:
    """The copies, stacked, with a legend."""
    pictures = [copy_picture(copy) for copy in copies]
    used = {kind for copy in copies for row in _plane(copy)[0] for kind in (cell.kind for cell in row)}
    return stacked((*pictures, legend([(kind, TENSOR[kind]) for kind in TENSOR if kind in used])))


def copy_picture(copy: Seen) -> Picture:
    """The tensor with the box outlined, and the tile, beside it or below."""
    cells, columns, rows = _plane(copy)
    high = _size(max(len(columns), len(rows)))
    frame = Frame(_within(rows, copy.corner, copy.box, 1), _within(columns, copy.corner, copy.box, 0))
    whole = grid(cells, Axis("y" if len(copy.sizes) > 1 else "", _heads(rows)), Axis("x", _heads(columns)), frame, high)
    notes = [
        line(f"{name} {shown[0]} to {shown[-1]} of {size}", CAPTION)
        for name, shown, size in zip("xy", (columns, rows), copy.sizes, strict=False)
        if shown and (shown[0] > 0 or shown[-1] < size - 1)
    ]
    tensor = captioned("global memory", stacked((whole, *notes), 6))
    tile = captioned("the tile, in shared memory", _tile(copy, high))
    both = beside((tensor, tile)) if tensor.width + tile.width < _WIDE else stacked((tensor, tile), 14)
    return captioned(describe(copy), both)


def _size(count: int) -> float:
    """The size of cells, for `count` of them in a row or column."""
    return next((size for most, size in _SIZES if count <= most), _SIZES[-1][1])


def _plane(copy: Seen) -> tuple[list[list[Cell]], range, range]:
    columns = _shown(copy.sizes[0], copy.corner[0], copy.box[0], copy.pitch)
    rows = _shown(copy.sizes[1], copy.corner[1], copy.box[1], 0) if len(copy.sizes) > 1 else range(1)
    cells = [[Cell("", copy.kind(x, y)) for x in columns] for y in rows]
    return cells, columns, rows


def _shown(size: int, corner: int, box: int, pitch: int) -> range:
    """The visible range: all, and the box where it extends outside; of a large tensor, the neighbourhood of the box's end."""
    first, last = min(0, corner), max(size, corner + box, pitch)
    if last - first > MOST:
        last = min(last, max(corner + box, 0) + _AROUND) if corner < size + _AROUND else last
        first = max(first, last - MOST)
    return range(first, last)


def _heads(shown: range) -> tuple[str, ...]:
    return tuple(map(str, shown))


def _within(shown: range, corner: Sequence[int], box: Sequence[int], at: int) -> tuple[int, int]:
    """The positions of the box among the visible cells."""
    if at >= len(corner):
        return 0, len(shown)
    first, last = corner[at] - shown.start, corner[at] + box[at] - shown.start
    return min(max(first, 0), len(shown)), min(max(last, 0), len(shown))


def _tile(copy: Seen, high: float) -> Picture:
    wide, tall = (*copy.tile, 1)[:2]
    step, down = (*copy.steps, 1)[:2]
    x, y = (*copy.corner, 0)[:2]
    kinds = [[copy.kind(x + step * i, y + down * j) for i in range(min(wide, MOST))] for j in range(min(tall, MOST))]
    cells = [[Cell("0" if kind == "zero" and high == HIGH else "", kind) for kind in row] for row in kinds]
    picture = grid(cells, Axis.counted("", len(cells)), Axis.counted("", len(cells[0])), high=high)
    cut = [f"{n - MOST} further {what}" for n, what in ((wide, "columns"), (tall, "rows")) if n > MOST]
    return picture if not cut else stacked((picture, line(", ".join(cut), CAPTION)), 6)
