"""The figures of the documentation are what the product draws now, byte for byte, and the page shows each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.figures import tma
from docs.figures.table import FIGURES

FOLDER = Path(__file__).parents[2] / "docs" / "figures"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FIGURES)
def test_figure(name: str, golden: Callable[[Path, str], None]) -> None:
    svg = FIGURES[name]()
    ElementTree.fromstring(svg)
    golden(FOLDER / f"{name}.svg", svg)


def test_the_page_shows_each_figure_once_and_no_file_is_left_over() -> None:
    assert re.findall(r"\]\(([\w-]+)\.svg\)", PAGE) == list(FIGURES)
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(FIGURES)


def test_boxing_by_compositing_is_boxing_of_the_merged_whole() -> None:
    """Figure 5 of the introduction: the primed IterDomains at its end have the indices of those at its start."""
    graph = tma.BY_COMPOSITING
    corners = [(0, d.extent.constant // 2, d.extent.constant - 1) for d in graph.logical]
    for index in product(*corners):
        below = graph.below({d.sym: i for d, i in zip(graph.logical, index, strict=True)})
        assert tuple(below[leaf.sym].constant for leaf in graph.leaves) == index
    assert [leaf.extent for leaf in graph.leaves] == [d.extent for d in graph.logical]
