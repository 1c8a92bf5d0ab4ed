"""Charts: where values lie, that nothing lies on something else, and that numbers of axes are round."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from tests.draw.test_style import MODES, contrast

from texpr.draw.chart import HIGH, WIDE, Line, Mark, Panel, chart
from texpr.draw.page.style import DOTS, PAGE, SERIES
from texpr.draw.page.text import SMALL, width

SVG = "{http://www.w3.org/2000/svg}"
PANEL = Panel(
    "GB/s", (Line("a", (Mark(100, 1.0, 0.5, 2.0), Mark(10000, 3.0, 3.0, 3.0))), Line("b", (Mark(1000, 2.0, 1.0, 2.5),)))
)


def parts(text: str, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(text).iter(f"{SVG}{tag}"))


def test_marks_lie_where_their_values_are() -> None:
    """By decades of sizes: the middle one is in the middle; values begin at 0, up to 3 of 3."""
    dots = [each for each in parts(chart("t", "n", (PANEL,)), "circle") if each.get("cx") != "12"]
    (first, last), (middle,) = dots[:2], dots[2:]
    lead = float(str(first.get("cx")))
    assert float(str(last.get("cx"))) - lead == pytest.approx(WIDE)
    assert float(str(middle.get("cx"))) - lead == pytest.approx(WIDE / 2)
    ys = [float(str(each.get("cy"))) for each in (first, last, middle)]
    assert ys[0] - ys[1] == pytest.approx(2 / 3 * HIGH, abs=0.02) and ys[0] - ys[2] == pytest.approx(1 / 3 * HIGH, abs=0.02)


def test_a_logarithmic_field_has_decades() -> None:
    panel = Panel("µs", (Line("a", (Mark(1, 3.0, 2.0, 40.0), Mark(2, 2000.0, 90.0, 2000.0))),), logarithmic=True)
    text = chart("t", "n", (panel,))
    dots = [each for each in parts(text, "circle") if each.get("cx") != "12"]
    low, high = (float(str(each.get("cy"))) for each in dots)
    assert low - high == pytest.approx(HIGH / 4 * 2.8239, abs=0.02)  # log10(2000 / 3) of four decades
    assert {"1", "10", "100", "1000", "10000"} <= {str(each.text) for each in parts(text, "text")}


def test_numbers_of_an_axis_do_not_meet() -> None:
    marks = tuple(Mark(1000 + at, 1.0, 1.0, 1.0) for at in range(300))
    texts = [
        each
        for each in parts(chart("t", "n", (Panel("s", (Line("a", marks),)),)), "text")
        if each.get("text-anchor") == "middle"
    ]
    places = sorted((float(str(each.get("x"))), width(str(each.text), SMALL)) for each in texts if str(each.text).isdecimal())
    assert 5 < len(places) < 30
    assert all(b - a > (of_a + of_b) / 2 for (a, of_a), (b, of_b) in pairwise(places))


@pytest.mark.parametrize("values", [(7.0,), (0.0,), (1e-9, 1e-9), (123456.0, 9.9e9)])
@pytest.mark.parametrize("logarithmic", [True, False])
def test_every_value_is_inside_of_its_field(values: tuple[float, ...], logarithmic: bool) -> None:
    marks = tuple(Mark(at, each, each / 2, each * 2) for at, each in enumerate(values, 1))
    text = chart("t", "n", (Panel("s", (Line("a", marks),), logarithmic),))
    dots = [float(str(each.get("cy"))) for each in parts(text, "circle") if each.get("cx") != "12"]
    grid = [float(found) for found in re.findall(r'class="lines" d="M[\d.]+ ([\d.]+)h', text)]
    assert all(min(grid) <= y <= max(grid) for y in dots) and max(grid) - min(grid) == pytest.approx(HIGH)


@pytest.mark.parametrize("mode", MODES)
def test_lines_are_seen_and_differ(mode: str) -> None:
    assert all(contrast(paint, PAGE, mode) >= 3 for paint in (*SERIES.values(), *DOTS.values()))
    assert len({getattr(paint, mode) for paint in SERIES.values()}) == len(SERIES)


def test_numbers_are_told_in_words() -> None:
    (desc,) = parts(chart("t", "n", (PANEL,)), "desc")
    assert desc.text == "GB/s over n. a: 1 at 100, 3 at 10000; b: 2 at 1000."
