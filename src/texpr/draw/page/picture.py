"""Pictures as values: contents, size, composition, and the document around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.draw.page.style import BOXES, style_sheet
from texpr.draw.page.svg import Element, element, group, number, serialize, words
from texpr.draw.page.text import CAPTION, TITLE, Font, fit, width
from texpr.support.record import Record

MARGIN = 20.0
SPACE = 28.0
"""Between two pictures."""

LINE = 20.0
"""The height of a line of text."""

_SWATCH = 16.0


class Picture(Record):
    """Elements in the rectangle from (0, 0) to (width, height)."""

    width: float
    height: float
    body: tuple[Element, ...]


def document(picture: Picture, title: str, description: str) -> str:
    """The picture as a file of SVG 1.1 with its own style sheet, readable on light and on dark pages."""
    wide, high = picture.width + 2 * MARGIN, picture.height + 2 * MARGIN
    inside = group(*picture.body, x=MARGIN, y=MARGIN)
    return serialize(
        element(
            "svg",
            element("title", title),
            element("desc", description),
            element("style", style_sheet(frozenset(_classes(inside)))),
            element("rect", kind="page", width=wide, height=high, rx=8),
            inside,
            xmlns="http://www.w3.org/2000/svg",
            kind="texpr",
            role="img",
            width=wide,
            height=high,
            viewBox=f"0 0 {number(wide)} {number(high)}",
        )
    )


def _classes(element: Element) -> Iterator[str]:
    yield from (name for key, value in element.attributes if key == "class" for name in value.split())
    for child in element.children:
        if isinstance(child, Element):
            yield from _classes(child)


def stacked(pictures: Sequence[Picture], space: float = SPACE) -> Picture:
    """Stacked vertically, centred."""
    wide = max((picture.width for picture in pictures), default=0.0)
    placed: list[Element] = []
    y = 0.0
    for picture in pictures:
        placed.append(group(*picture.body, x=(wide - picture.width) / 2, y=y))
        y += picture.height + space
    return Picture(wide, max(y - space, 0.0), tuple(placed))


def beside(pictures: Sequence[Picture], space: float = 2 * SPACE) -> Picture:
    """Side by side, with the tops aligned."""
    placed: list[Element] = []
    x = 0.0
    for picture in pictures:
        placed.append(group(*picture.body, x=x))
        x += picture.width + space
    return Picture(max(x - space, 0.0), max((picture.height for picture in pictures), default=0.0), tuple(placed))


def captioned(text: str, picture: Picture) -> Picture:
    """A line of text above the picture."""
    return stacked((line(text), picture), space=10.0)


def line(text: str, font: Font = TITLE) -> Picture:
    """A line of text on its own."""
    text = fit(text, 120)
    return Picture(width(text, font), LINE, (words(text, 0, LINE / 2, font),))


def arrow(text: str) -> Picture:
    """An arrow down with its label."""
    said = line(text)
    half = said.width + 12.0
    line_down = element("path", kind="edge", d=f"M{number(half)} 0V22")
    aside = group(*said.body, x=half + 12, y=4)
    body = (line_down, head(half, 28), aside)
    return Picture(2 * half, 28.0, body)


def head(x: float, y: float) -> Element:
    """An arrowhead that points down at (x, y)."""
    return element("path", kind="head", d=f"M{number(x)} {number(y)}l-3.5 -7h7z")


def area(kind: str, x: float, y: float, wide: float, high: float, rx: float = 0.0) -> tuple[Element, ...]:
    """A rectangle of class `kind`, hatched if its class is."""
    rectangle = element("rect", kind=kind, x=x, y=y, width=wide, height=high, rx=rx or None)
    if not BOXES[kind.split()[0]].hatched:
        return (rectangle,)
    return (rectangle, element("path", kind="hatch", d="".join(_hatch(x, y, wide, high))))


def _hatch(x: float, y: float, wide: float, high: float, step: float = 8.0) -> Iterator[str]:
    """Slanted lines inside a rectangle."""
    at = step
    while at < wide + high:
        x0, y0 = (at, 0.0) if at <= wide else (wide, at - wide)
        x1, y1 = (0.0, at) if at <= high else (at - high, high)
        yield f"M{number(x + x0)} {number(y + y0)}L{number(x + x1)} {number(y + y1)}"
        at += step


def legend(entries: Sequence[tuple[str, str]], limit: float = 640.0) -> Picture:
    """A legend, in lines of at most `limit` pixels where possible."""
    rows: list[list[Picture]] = [[]]
    for kind, text in entries:
        entry = _entry(kind, text)
        if rows[-1] and sum(e.width + SPACE for e in rows[-1]) + entry.width > limit:
            rows.append([])
        rows[-1].append(entry)
    return stacked([beside(row, SPACE) for row in rows], space=4.0)


def _entry(kind: str, text: str) -> Picture:
    mark = area(kind, 0.5, (LINE - _SWATCH) / 2, _SWATCH, _SWATCH)
    said = words(text, _SWATCH + 8, LINE / 2, CAPTION)
    return Picture(_SWATCH + 8 + width(text, CAPTION), LINE, (*mark, said))
