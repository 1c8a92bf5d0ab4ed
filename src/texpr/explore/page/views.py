"""Lines, tables, trees, diagnostics and pictures, as elements.

A line that comes from lines 5 and 6 of the program has `data-o="5 6"`, by which a page lights all that belong together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from texpr.explore.lines import Line
from texpr.explore.page.html import Content, Element, element
from texpr.explore.page.pictures import picture_of
from texpr.support.diagnostic import Diagnostic
from texpr.support.render import render, severity

_COMMENT = re.compile(r"(?:^|(?<=\s))(?:--|//)\s.*$")
MOST_LINES = 20_000
"""The lines of one form that a page shows."""


def origin(lines: Iterable[int]) -> str | None:
    """The attribute of what comes from these lines."""
    return " ".join(str(line) for line in lines if line > 0) or None


def listing(lines: Sequence[Line], label: str, first: int = 1) -> Element:
    """Lines of a text with their numbers."""
    shown = [_line(number, line) for number, line in enumerate(lines[:MOST_LINES], first)]
    left = len(lines) - len(shown)
    more = (note(f"{left} more lines are not shown"),) if left > 0 else ()
    return element("div", element("pre", *shown, kind="code", tabindex="0", aria_label=label), *more)


def _line(number: int, line: Line) -> Element:
    comment = _COMMENT.search(line.text)
    text: tuple[Content, ...] = (line.text,)
    if comment is not None:
        text = (line.text[: comment.start()], element("span", comment[0], kind="c"))
    told = origin(line.origin)
    count = element("span", str(number), kind="n")
    return element("span", count, *text, "\n", kind="l", data_o=told)


def note(text: str) -> Element:
    """A remark."""
    return element("p", text, kind="note")


def title(text: str) -> Element:
    """A heading within a pane."""
    return element("h3", text)


def diagnostics(found: Sequence[Diagnostic]) -> tuple[Element, ...]:
    """Each with its caret; a click on one lights its line."""
    return tuple(_diagnostic(each) for each in found)


def _diagnostic(found: Diagnostic) -> Element:
    at = None if found.span is None or not found.span.source.text else origin((found.span.line,))
    text = render(found).rstrip("\n")
    return element("pre", text, kind=f"problem {severity(found)} l", data_o=at)


def fault(what: str, where: str) -> Element:
    """A fault of the compiler's own."""
    told = (
        "This is a fault of texpr, not of your program. The page goes on; please report it, as CONTRIBUTING.md says, with this "
        "program."
    )
    head = element("strong", f"internal error: {what}")
    return element("div", head, note(f"in {where}"), note(told), kind="problem fault")


def table(head: Sequence[str], rows: Iterable[Element]) -> Element:
    """A table with one row of headings."""
    heads = (element("th", text, scope="col") for text in head)
    return element("table", element("thead", element("tr", *heads)), element("tbody", *rows))


def row(cells: Sequence[Content], lines: Iterable[int] = (), kind: str = "") -> Element:
    """A row that comes from lines of the program."""
    return element("tr", *(element("td", cell) for cell in cells), kind=f"l {kind}".strip(), data_o=origin(lines))


def folded(head: str, *inside: Content, opened: bool = False) -> Element:
    """What a click on its heading opens."""
    return element("details", element("summary", head), *inside, open="open" if opened else None)


def picture(svg: str) -> Element:
    """A picture, and in words, which are its description, what it shows."""
    return element("figure", picture_of(svg))


def tree(value: object) -> Content:
    """Plain data: objects as tables of two columns, lists as lists; what has a `line` is lit with it."""
    match value:
        case dict():
            given = cast("Mapping[str, object]", value)
            return element("table", element("tbody", *(_entry(key, each) for key, each in given.items())), **_lit(given))
        case list() | tuple():
            items = cast("Sequence[object]", value)
            if not any(isinstance(each, dict | list | tuple) for each in items):
                return ", ".join(_plain(each) for each in items) or "none"
            return element("ol", *(element("li", tree(each)) for each in items))
        case _:
            return _plain(value)


def _lit(given: Mapping[str, object]) -> dict[str, Any]:
    lines = [value for key, value in given.items() if key in ("line", "from_line", "to_line") and isinstance(value, int)]
    return {"kind": "tree l" if lines else "tree", "data_o": origin(dict.fromkeys(lines))}


def _entry(key: str, value: object) -> Element:
    count = len(cast("Sequence[object]", value)) if isinstance(value, list | dict) else 0
    shown = tree(cast("object", value))
    inside = folded(f"{count}", shown) if count > FOLDED else shown
    return element("tr", element("th", key.replace("_", " "), scope="row"), element("td", inside))


FOLDED = 6
"""The entries from which on a part of a tree is folded."""


def _plain(value: object) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case _:
            return str(value)
