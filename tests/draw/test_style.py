"""Contrast in both modes (WCAG 2.2: 1.4.3 for text, 1.4.11 for lines), and the style sheet."""

from __future__ import annotations

import re

import pytest

from texpr.draw.page.style import ALARM, BOXES, CELLS, INK, INKS, LINES, PAGE, ROLES, Paint, style_sheet
from texpr.draw.page.text import CELL, FONTS, NAME, TITLE, fit, width

MODES = ("light", "dark")


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Paint, other: Paint, mode: str) -> float:
    """From 1, the same, to 21, black on white."""
    low, high = sorted(luminance(getattr(paint, mode)) for paint in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_known_colours() -> None:
    assert contrast(Paint("#000000", ""), Paint("#ffffff", ""), "light") == pytest.approx(21)
    assert contrast(Paint("#767676", ""), Paint("#ffffff", ""), "light") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("mode", MODES)
def test_text_is_legible(mode: str) -> None:
    assert {font.name for font in FONTS} == INKS.keys()
    for ink in INKS.values():
        assert contrast(ink, PAGE, mode) >= 4.5
    for font in (NAME, TITLE, CELL):
        assert INKS[font.name] is INK
    for box in BOXES.values():
        assert contrast(INK, box.fill, mode) >= 4.5


@pytest.mark.parametrize("mode", MODES)
def test_lines_that_carry_meaning_are_seen(mode: str) -> None:
    assert contrast(LINES["edge"], PAGE, mode) >= 3
    assert contrast(ALARM, PAGE, mode) >= 3
    for name in ("domain", "transform", *ROLES):
        assert contrast(BOXES[name].stroke, PAGE, mode) >= 3


def test_every_role_and_cell_looks_different() -> None:
    for names in (ROLES, CELLS):
        for mode in MODES:
            assert len({(getattr(BOXES[name].fill, mode), BOXES[name].hatched) for name in names}) == len(names)


def test_the_sheet_holds_what_is_used_and_its_dark_side() -> None:
    sheet = style_sheet({"domain", "name", "edge"})
    light, dark = sheet.split("@media (prefers-color-scheme:dark){")
    for text, mode in ((light, "light"), (dark, "dark")):
        assert set(re.findall(r"\.texpr \.(\w+)", text)) == {"page", "domain", "name", "edge"}
        assert f".texpr .domain{{fill:{getattr(BOXES['domain'].fill, mode)}" in text
    assert sheet.count("{") == sheet.count("}")


def test_widths() -> None:
    assert width("I0{15}", NAME) == pytest.approx(6 * 0.602 * 14)
    assert width("ii", TITLE) < width("WW", TITLE)
    assert width("e\u0301", TITLE) == width("e", TITLE)
    assert width("名", TITLE) > width("M", TITLE)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_fitting_keeps_both_ends(limit: int) -> None:
    assert fit("abcdefgh", limit) == {1: "…", 2: "a…", 3: "a…h", 7: "abc…fgh", 8: "abcdefgh"}[limit]
