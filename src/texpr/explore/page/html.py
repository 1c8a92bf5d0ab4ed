"""A small writer of HTML: elements as values, in which every text is escaped.

element = tag attributes (element | text)*
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape as _escape
from typing import TypeAlias

from texpr.support.record import Record
from texpr.support.render import visible

Content: TypeAlias = "Element | str"

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
"""Elements that have no end."""

URLS = frozenset({"href", "src", "action", "formaction", "srcdoc", "data", "style"})
"""Attributes that mean more than a text: none is written here; pages write links to their own files."""


class Element(Record):
    """One element; string children are text."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[Content, ...] = ()


def element(tag: str, *children: Content, **attributes: str | int | None) -> Element:
    """An element. `kind` is its class, `_` in a name stands for `-`; what is None, or has no text, is omitted."""
    given = ((_name(name), str(value)) for name, value in attributes.items() if value is not None and value != "")
    written = tuple(given)
    for name, _ in written:
        if name in URLS or name.startswith("on"):
            raise ValueError(f"`{name}` is no attribute for a text")
    return Element(tag, written, children)


def _name(name: str) -> str:
    return "class" if name == "kind" else name.rstrip("_").replace("_", "-")


def escape(text: str) -> str:
    """`text` for an element or a quoted attribute: no markup, no control character, nothing that changes the direction of
    writing."""
    return _escape(visible(text.expandtabs(4)), quote=True)


def written(content: Content | Iterable[Content]) -> str:
    """The text of elements."""
    return "".join(_pieces((content,) if isinstance(content, Element | str) else content))


def _pieces(contents: Iterable[Content]) -> Iterator[str]:
    for content in contents:
        if isinstance(content, str):
            yield escape(content)
            continue
        yield f"<{content.tag}" + "".join(f' {name}="{escape(value)}"' for name, value in content.attributes) + ">"
        if content.tag not in VOID:
            yield from _pieces(content.children)
            yield f"</{content.tag}>"
