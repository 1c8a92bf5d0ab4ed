"""Pictures within a page: they only draw, they have their colours, and they are lit by the lines that they tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.explore.test_html import Reader

from texpr.explore.page.html import written
from texpr.explore.page.pictures import ATTRIBUTES, TAGS, picture_of, pictures_style

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs").rglob("*.svg"))


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_every_picture_of_the_documents_can_be_taken_over(path: Path) -> None:
    svg = path.read_text(encoding="utf-8")
    found = Reader(written(picture_of(svg)))
    tags = [tag for tag, _ in found.tags]
    assert set(tags) <= TAGS
    assert {name.lower() for _, names in found.tags for name in names} <= {*map(str.lower, ATTRIBUTES), "data-o"}
    for tag in TAGS - {"title"}:
        assert tags.count(tag) == len(re.findall(rf"<{tag}[ >]", svg)), tag
    words = [text for text in re.findall(r"<text[^>]*>([^<&]*)</text>", svg) if text.strip()]
    assert words and all(text in found.text for text in words)


def test_every_class_has_its_colour() -> None:
    used = {
        name for path in PICTURES for names in re.findall(r'class="([^"]*)"', path.read_text("utf-8")) for name in names.split()
    }
    sheet = pictures_style()
    assert used <= {*re.findall(r"\.([a-z]+\d*)", sheet), "texpr"}


SVG = '<svg xmlns="http://www.w3.org/2000/svg" class="texpr">{}</svg>'


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("line 21: warp 0's load", "21"),
        ("· · cp_async: K_s ← K (line 7)", "7"),
        ("wait, 0 pending: RAW K_s, 21 → 24; RAW X_s, 3 → 24", "21 24 3"),
        ("lines of memory", None),
        ("deadline 7", None),
    ],
)
def test_a_text_is_lit_by_the_lines_that_it_tells(text: str, lines: str | None) -> None:
    ((_, names),) = (
        each for each in Reader(written(picture_of(SVG.format(f'<text class="c">{text}</text>')))).tags if each[0] == "text"
    )
    assert (names.get("data-o"), names["class"]) == (lines, "c" if lines is None else "c l")


@pytest.mark.parametrize(
    "inside",
    [
        "<script>1</script>",
        '<a href="x">y</a>',
        '<rect onclick="x"/>',
        '<rect style="x"/>',
        "<foreignObject/>",
        '<image href="x"/>',
    ],
)
def test_what_does_not_only_draw_is_refused(inside: str) -> None:
    with pytest.raises(ValueError, match="no part of a picture"):
        picture_of(SVG.format(inside))


def test_a_style_of_its_own_is_left_out() -> None:
    assert "style" not in written(picture_of(SVG.format("<style>.a{fill:red}</style><rect/>")))
