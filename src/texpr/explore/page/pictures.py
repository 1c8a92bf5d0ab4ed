"""Pictures within a page: what draws them makes files of SVG; here they become elements, which tell their lines and can be lit.

A file has a style sheet of its own, which the policy of a page does not permit; a page has one for all pictures. What is taken
over are elements and attributes that only draw: anything else is a fault of ours.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from texpr.draw.page.style import BOXES, DOTS, LINES, STRIPS, style_sheet
from texpr.draw.page.text import FONTS
from texpr.explore.page.html import Content, Element

TAGS = frozenset({"svg", "g", "rect", "path", "text", "ellipse", "title", "desc"})
ATTRIBUTES = frozenset({
    "class", "cx", "cy", "d", "height", "role", "rx", "ry", "text-anchor", "transform", "viewBox", "width", "x", "y"
})  # fmt: skip

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_LINES = re.compile(r"\bline (\d+)\b|(?<=[ ,])(\d+) → (\d+)\b")


def pictures_style() -> str:
    """The style sheet of all pictures."""
    others = ("head", "page", "same")
    return style_sheet(frozenset((*(font.name for font in FONTS), *LINES, *BOXES, *STRIPS, *DOTS, *others)))


def picture_of(svg: str) -> Element:
    """A picture of ours as elements. A text in it that tells lines of the program is lit with them. Raises ValueError for what
    does not only draw."""
    root = _element(ElementTree.fromstring(svg))
    return Element(root.tag, root.attributes, tuple(each for each in root.children if not _is(each, "title")))


def _is(content: Content, tag: str) -> bool:
    return isinstance(content, Element) and content.tag == tag


def _element(node: ElementTree.Element) -> Element:
    tag = node.tag.removeprefix(_NAMESPACE)
    attributes = dict(node.attrib)
    if tag not in TAGS or not attributes.keys() <= ATTRIBUTES:
        raise ValueError(f"`{tag}` with {', '.join(attributes)} is no part of a picture")
    text = (node.text or "").strip("\n")
    if tag == "text" and (found := _LINES.findall(text)):
        lines = dict.fromkeys(number for pair in found for number in pair if number)
        attributes = {**attributes, "class": f"{attributes.get('class', '')} l".strip(), "data-o": " ".join(lines)}
    inside = (_element(child) for child in node if child.tag != f"{_NAMESPACE}style")
    return Element(tag, tuple(attributes.items()), (*((text,) if text else ()), *inside))
