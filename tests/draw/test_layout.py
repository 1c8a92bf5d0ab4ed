"""Tables of layouts, and of who holds what."""

from __future__ import annotations

import pytest
from tests.draw.graphs import texts

from texpr.draw.layout import draw_layout, draw_thread_value, held
from texpr.layout.error import LayoutError
from texpr.layout.layout import Layout
from texpr.layout.text import parse_composed, parse_layout
from texpr.layout.thread_value import thread_value


def test_values_stand_in_rows_of_mode_0() -> None:
    svg = draw_layout(parse_layout("(2,3):(3,1)"))
    assert [text for text in texts(svg) if text.isdecimal()][5:] == ["0", "1", "2", "3", "4", "5"]
    assert "(1,2)" in texts(draw_layout(parse_layout("(2,3):(1@0,1@1)")))
    assert "Sw<1,0,1> o 0 o (2,2):(2,1)" in texts(draw_layout(parse_composed("Sw<1,0,1> o 0 o (2,2):(2,1)")))


def test_what_makes_no_table_is_refused() -> None:
    with pytest.raises(LayoutError, match="3 modes"):
        draw_layout(Layout((2, 2, 2)))
    with pytest.raises(LayoutError, match="not numbers"):
        draw_layout(parse_layout("(n,2)"))
    with pytest.raises(ValueError, match="more than a picture can show"):
        draw_layout(Layout((1000, 1000)))


def test_each_element_has_one_holder() -> None:
    tile, tv = thread_value(Layout((2, 3), (3, 1)), Layout((2, 1)))
    sizes = [int(str(size)) for size in tile]
    cells = held(sizes, tv)
    assert [[cell.text for cell in row] for row in cells] == [
        ["T0 V0", "T1 V0", "T2 V0"], ["T0 V1", "T1 V1", "T2 V1"],
        ["T3 V0", "T4 V0", "T5 V0"], ["T3 V1", "T4 V1", "T5 V1"],
    ]  # fmt: skip
    assert "T5 V1" in texts(draw_thread_value(sizes, tv))
    with pytest.raises(ValueError, match="twice, or not at all"):
        held([2], Layout((2, 2), (0, 1)))
    with pytest.raises(ValueError, match="2 elements without a thread"):
        held([4], Layout((2, 1), (1, 0)))
