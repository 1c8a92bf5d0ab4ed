"""A small writer of SVG: elements as values, with deterministic output.

element = tag attributes (element | text)*
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.draw.page.text import Font, fit, printable
from texpr.support.record import Record

Number = int | float


class Element(Record):
    """One element; string children are text."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[Element | str, ...] = ()


def element(tag: str, *children: Element | str, **attributes: str | Number | None) -> Element:
    """An element. `kind` is its class, `_` in a name stands for `-`, numbers have at most two digits after the point, None is
    omitted."""
    given = ((name, value) for name, value in attributes.items() if value is not None)
    written = tuple(("class" if name == "kind" else name.replace("_", "-"), _value(value)) for name, value in given)
    return Element(tag, written, children)


def number(value: Number) -> str:
    """`value` with at most two digits after the point, and no sign on a zero."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _value(value: str | Number) -> str:
    return value if isinstance(value, str) else number(value)


def escape(text: str) -> str:
    """`text` escaped for an element or a double-quoted attribute."""
    text = printable(text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def serialize(element: Element) -> str:
    """The text of an element: one line for each child of a group, for readable diffs."""
    return "\n".join(_lines(element)) + "\n"


def _lines(element: Element) -> Iterator[str]:
    opening = element.tag + "".join(f' {name}="{escape(value)}"' for name, value in element.attributes)
    if not element.children:
        yield f"<{opening}/>"
    elif element.tag in ("svg", "g"):
        yield f"<{opening}>"
        for child in element.children:
            yield from [escape(child)] if isinstance(child, str) else _lines(child)
        yield f"</{element.tag}>"
    else:
        inside = "".join(escape(c) if isinstance(c, str) else "\n".join(_lines(c)) for c in element.children)
        yield f"<{opening}>{inside}</{element.tag}>"


def group(*children: Element, x: Number = 0, y: Number = 0, title: str | None = None) -> Element:
    """Children translated by (x, y); `title` is their tooltip."""
    move = f"translate({number(x)} {number(y)})" if x or y else None
    named = (element("title", title),) if title else ()
    return element("g", *named, *children, transform=move)


def words(text: str, x: Number, middle: Number, font: Font, *, anchor: str = "start", limit: int = 120) -> Element:
    """One line of text, its lower-case letters centred on the height `middle`."""
    at = None if anchor == "start" else anchor
    return element("text", fit(text, limit), kind=font.name, x=x, y=middle + font.size * 0.35, text_anchor=at)
