"""A grid of cells with what their rows and columns are, and what each holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from texpr.draw.picture import Picture, area
from texpr.draw.svg import Element, element, words
from texpr.draw.text import CELL, NAME, SMALL, width

HIGH = 26.0
_LEAST = 26.0
_HEAD = 22.0
_ASIDE = 8.0


@dataclass(frozen=True, slots=True)
class Cell:
    """What one cell says, and its class, a key of `texpr.draw.style.BOXES`."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Axis:
    """Along one side of a grid: what it counts, and what stands at each row or column."""

    name: str
    heads: tuple[str, ...]

    @classmethod
    def counted(cls, name: str, count: int, first: int = 0) -> Axis:
        """Numbers from `first` on."""
        return cls(name, tuple(str(first + at) for at in range(count)))


@dataclass(frozen=True, slots=True)
class Frame:
    """An outline around the cells from one corner up to another that is no more in it."""

    rows: tuple[int, int]
    columns: tuple[int, int]


def grid(cells: Sequence[Sequence[Cell]], down: Axis, across: Axis, frame: Frame | None = None) -> Picture:
    """The picture of `cells`, row by row; `down` says what rows are, `across` what columns are."""
    heads = max((width(text, SMALL) for text in across.heads), default=0.0) + 6
    wide = max(_LEAST, heads, *(width(cell.text, CELL) + 12 for row in cells for cell in row), 0.0)
    lead = max(width(down.name, NAME), *(width(text, SMALL) for text in down.heads), width(across.name, NAME), 0.0) + _ASIDE
    top = 2 * _HEAD if down.name else _HEAD
    body: list[Element] = [words(across.name, lead - _ASIDE, _HEAD / 2, NAME, anchor="end")] if across.name else []
    if down.name:
        body.append(words(down.name, lead - _ASIDE, 1.5 * _HEAD, NAME, anchor="end"))
    for at, text in enumerate(across.heads):
        body.append(words(text, lead + (at + 0.5) * wide, _HEAD / 2, SMALL, anchor="middle"))
    for at, text in enumerate(down.heads):
        body.append(words(text, lead - _ASIDE, top + (at + 0.5) * HIGH, SMALL, anchor="end"))
    for row, line in enumerate(cells):
        for column, cell in enumerate(line):
            x, y = lead + column * wide, top + row * HIGH
            body += area(cell.kind, x, y, wide, HIGH)
            if cell.text:
                body.append(words(cell.text, x + wide / 2, y + HIGH / 2, CELL, anchor="middle"))
    if frame is not None:
        body.append(_outline(frame, lead, top, wide))
    return Picture(lead + wide * len(across.heads) + 1, top + HIGH * len(down.heads) + 1, tuple(body))


def _outline(frame: Frame, lead: float, top: float, wide: float) -> Element:
    (first, last), (left, right) = frame.rows, frame.columns
    size = {"width": (right - left) * wide - 2, "height": (last - first) * HIGH - 2}
    return element("rect", kind="frame", x=lead + left * wide + 1, y=top + first * HIGH + 1, **size)
