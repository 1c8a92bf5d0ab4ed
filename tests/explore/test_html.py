"""HTML that is made of texts that anybody may have written: what is read of it are these texts, and no markup but ours."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from texpr.explore.lines import Line
from texpr.explore.page.html import element, written
from texpr.explore.page.views import listing, note, row, tree
from texpr.support.render import visible

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "'\"><svg/onload=alert(1)>",
    "&lt;b&gt;",
    "a\0b",
    "\u202egnp.exe",
    "]]><!--",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
)


TAGS = frozenset(["details", "div", "li", "ol", "p", "pre", "span", "summary", "table", "tbody", "td", "th", "tr"])
"""What views make of plain lines, rows and data."""


class Reader(HTMLParser):
    """What is read of a page: its elements with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


@given(st.text())
@example(HOSTILE[0])
@example(HOSTILE[4])
@example(HOSTILE[5])
def test_a_text_is_read_as_a_text(text: str) -> None:
    found = Reader(written(element("p", text, title=text, kind="note")))
    shown = visible(text.expandtabs(4))
    assert found.text == shown
    assert found.tags == [("p", {"title": shown, "class": "note"} if shown else {"class": "note"})]


@given(st.lists(st.text(max_size=20), max_size=5))
@example(list(HOSTILE))
def test_lines_rows_and_trees_hold_texts_alone(texts: list[str]) -> None:
    parts = (
        listing([Line(text, (1, 2)) for text in texts], "a listing"),
        row(texts, (3,)),
        tree({"line": 4, "names": texts, "deep": [{"name": text} for text in texts]}),
        *map(note, texts),
    )
    found = Reader(written(parts))
    assert {tag for tag, _ in found.tags} <= TAGS
    assert {name for _, names in found.tags for name in names} <= {"class", "data-o", "tabindex", "aria-label", "scope"}


@pytest.mark.parametrize("name", ["onclick", "href", "src", "style", "srcdoc"])
def test_an_attribute_that_is_more_than_a_text_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no attribute for a text"):
        element("a", "x", **{name: "javascript:alert(1)"})
