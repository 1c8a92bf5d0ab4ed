"""A grid of cells with headers of rows and columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from texpr.draw.page.picture import Picture, area
from texpr.draw.page.svg import Element, element, group, number, words
from texpr.draw.page.text import CELL, NAME, SMALL, width
from texpr.support.record import Record

HIGH = 26.0
"""The height of a cell, and its least width, by default."""

_HEAD = 22.0
_HEADS = 14.0  # between headers
_ASIDE = 8.0
_STRIP = 4.0


class Cell(Record):
    """The text of a cell, its class, a key of `texpr.draw.page.style.BOXES`, and that of the strip below, of `STRIPS`."""

    text: str
    kind: str
    strip: str = ""


class Axis(Record):
    """One side of a grid: its name, and the headers of rows or columns."""

    name: str
    heads: tuple[str, ...]
    anchor: str = "end"

    @classmethod
    def counted(cls, name: str, count: int, first: int = 0) -> Axis:
        """The numbers from `first` on."""
        return cls(name, tuple(str(first + at) for at in range(count)))


class Frame(Record):
    """An outline around the cells from one corner to another, exclusive."""

    rows: tuple[int, int]
    columns: tuple[int, int]


def grid(cells: Sequence[Sequence[Cell]], down: Axis, across: Axis, frame: Frame | None = None, high: float = HIGH) -> Picture:
    """The picture of `cells`, row by row; `down` has the row headers, `across` the column headers.

    Cells have the height `high` and at least that width; where cells are too small for a header each, every 2nd, 4th, … has
    one.
    """
    heads = max((width(text, SMALL) for text in across.heads), default=0.0) + 6
    texts = (width(cell.text, CELL) + 12 for row in cells for cell in row if cell.text)
    wide = max(high, heads if high == HIGH else 0.0, max(texts, default=0.0))
    over = max(0.0, (heads - 6 - wide) / 2)  # the overhang of the first header on the left
    lead = max(width(down.name, NAME), *(width(text, SMALL) for text in down.heads), width(across.name, NAME) + over) + _ASIDE
    top = 2 * _HEAD if down.name else _HEAD
    body: list[Element] = [words(across.name, lead - _ASIDE - over, _HEAD / 2, NAME, anchor="end")] if across.name else []
    if down.name:
        body.append(words(down.name, lead - _ASIDE, 1.5 * _HEAD, NAME, anchor="end"))
    for at, text in enumerate(across.heads):
        if at % _every(heads, wide) == 0:
            body.append(words(text, lead + (at + 0.5) * wide, _HEAD / 2, SMALL, anchor="middle"))
    for at, text in enumerate(down.heads):
        if at % _every(_HEADS, high) == 0:
            x = lead - _ASIDE if down.anchor == "end" else 0.0
            body.append(words(text, x, top + (at + 0.5) * high, SMALL, anchor=down.anchor))
    filled = _cells(cells, wide, high) if high == HIGH else _small_cells(cells, wide, high)
    body.append(group(*filled, x=lead, y=top))
    if frame is not None:
        body.append(_outline(frame, lead, top, wide, high))
    return Picture(lead + wide * len(across.heads) + 1, top + high * len(down.heads) + 1, tuple(body))


def _cells(cells: Sequence[Sequence[Cell]], wide: float, high: float) -> Iterator[Element]:
    for row, line in enumerate(cells):
        for column, cell in enumerate(line):
            x, y = column * wide, row * high
            yield from area(cell.kind, x, y, wide, high)
            if cell.text:
                yield words(cell.text, x + wide / 2, y + high / 2 - (_STRIP / 2 if cell.strip else 0), CELL, anchor="middle")
            if cell.strip:
                yield element("rect", kind=cell.strip, x=x + 1, y=y + high - _STRIP - 1, width=wide - 2, height=_STRIP)


def _small_cells(cells: Sequence[Sequence[Cell]], wide: float, high: float) -> Iterator[Element]:
    """Cells without text: adjacent ones of one kind are one area, with grid lines drawn over all of them."""
    for row, line in enumerate(cells):
        column = 0
        for kind, run in groupby(cell.kind for cell in line):
            count = len(list(run))
            yield from area(kind, column * wide, row * high, count * wide, high)
            column += count
    if cells:
        across, down = len(cells[0]) * wide, len(cells) * high
        lines = [f"M0 {number(row * high)}H{number(across)}" for row in range(len(cells) + 1)]
        lines += [f"M{number(column * wide)} 0V{number(down)}" for column in range(len(cells[0]) + 1)]
        yield element("path", kind="lines", d="".join(lines))


def _every(room: float, size: float) -> int:
    """The interval of headers, where one needs `room`: 1, 2, 4, …"""
    found = 1
    while found * size < room:
        found *= 2
    return found


def _outline(frame: Frame, lead: float, top: float, wide: float, high: float) -> Element:
    (first, last), (left, right) = frame.rows, frame.columns
    size = {"width": (right - left) * wide - 2, "height": (last - first) * high - 2}
    return element("rect", kind="frame", x=lead + left * wide + 1, y=top + first * high + 1, **size)
