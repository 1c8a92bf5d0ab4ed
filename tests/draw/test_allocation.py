"""Pictures of allocations: which item each cell holds, by a walk over the items; the published figures, number by number."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from docs.figures import divisibility, tma
from tests.draw.graphs import classed, texts

from texpr.affine.expr import Sym
from texpr.domain.graph import DomainGraph
from texpr.draw.allocation import MOST_CELLS, Cells, draw_allocation, held

Z = "Z"


def listed(text: str) -> list[str]:
    """Items as the published figures show them: numbers, `Z`, and a star on holes that hold data from inside the tensor."""
    return text.replace("/", " ").split()


LISTED = {
    "weak": (tma.WEAK, "I3", "0 1 2 3 4* 5* 6* 7*  4 5 6 7 8* 9* 10* 11*  8 9 10 11 Z Z Z Z"),
    "strong": (
        tma.STRONG,
        "I8",
        "0 1 2 3 6 7 8 9 / 4 5 Z Z 10 11 Z Z / 12 13 14 15 18 19 20 21 / 16 17 Z Z 22 23 Z Z / 24 25 26 27 30 31 32 33 /"
        "28 29 Z Z 34 35 Z Z / Z Z Z Z Z Z Z Z / Z Z Z Z Z Z Z Z",
    ),
    "not strong": (tma.NOT_STRONG, "I5 I2", "0 1 6 7  2 3 8* 9*  4 5 10* 11*  8 9 14 15  10 11 Z Z  12 13 Z Z"),
}


@pytest.mark.parametrize("name", LISTED)
def test_what_the_figures_list_is_loaded(name: str) -> None:
    graph, bulk, text = LISTED[name]
    cells = tma.loaded(tma.copied(graph, bulk))
    starred = ("*" if kind == "filled" else "" for kind in cells.kinds.flat)
    assert [f"{text}{star}" for text, star in zip(cells.texts.flat, starred, strict=True)] == listed(text)
    assert {kind for text, kind in zip(cells.texts.flat, cells.kinds.flat, strict=True) if text == Z} <= {"zero"}


def test_six_items_as_two_by_four() -> None:
    assert held(divisibility.VIEWED).texts.tolist() == [["0", "1", "2", "3"], ["4", "5", "", ""]]
    assert held(divisibility.RESIZED).kinds.tolist() == ["value"] * 6 + ["hole"] * 2
    assert held(DomainGraph.of(("I0", 6)).split("I0", 4)).texts.tolist() == held(divisibility.VIEWED).texts.tolist()


def walked(graph: DomainGraph) -> dict[tuple[int, ...], str]:
    """Where each item lies, by following it down with integers."""
    extents = [d.extent.constant for d in graph.logical]
    places: dict[tuple[int, ...], str] = {}
    for number, index in enumerate(product(*map(range, extents))):
        below = graph.below({d.sym: i for d, i in zip(graph.logical, index, strict=True)})
        places[tuple(below[leaf.sym].constant for leaf in graph.leaves)] = str(number)
    return places


@pytest.mark.parametrize("seed", range(25))
def test_every_cell_holds_its_item(seed: int) -> None:
    graph = DomainGraph.of(("I0", 4), ("I1", 3), ("I2", 5)).split("I0", 1 + seed % 3, ("a", "b")).merge("b", "I2", "c")
    graph = graph.resize("c", 0, seed % 4, "d").split("d", 1 + seed % 5, ("e", "f")).reorder("e", "a", "I1", "f")
    cells, places = held(graph), walked(graph)
    for index in np.ndindex(cells.texts.shape):
        assert cells.texts[index] == places.get(index, "")
        assert cells.kinds[index] == ("value" if index in places else "hole")


def test_a_picture_shows_every_cell_once() -> None:
    svg = draw_allocation(tma.STRONG_TOO)
    assert len(classed(svg, "value")) == 36 + 1  # and the legend's
    assert len(classed(svg, "hole")) == 96 - 36 + 1
    cells = ["".join(e.itertext()) for e in classed(svg, "cell")]
    assert cells == [text for text in held(tma.STRONG_TOO).texts.flat if text]
    assert texts(svg)[-2:] == ["an item", "a hole"]


@pytest.mark.parametrize("across", [0, 1, 2, 3, 4])
def test_cells_do_not_meet_however_many_leaves_run_across(across: int) -> None:
    svg = draw_allocation(tma.STRONG_TOO, across=across)
    corners = [(float(e.get("x", 0)), float(e.get("y", 0))) for kind in ("value", "hole") for e in classed(svg, kind)[:-1]]
    assert len(set(corners)) == 96
    wide, high = (float(classed(svg, "value")[0].get(name, 0)) for name in ("width", "height"))
    for x, y in corners:
        assert not any((x, y) != (u, v) and abs(x - u) < wide - 1e-6 and abs(y - v) < high - 1e-6 for u, v in corners)


@pytest.mark.parametrize(
    "graph", [DomainGraph.of(), DomainGraph.of(("i", 0)), DomainGraph.of(("i", 1)), DomainGraph.of(("i", 0), ("j", 3))]
)
def test_small_allocations(graph: DomainGraph) -> None:
    svg = draw_allocation(graph)
    assert len(classed(svg, "value")) == prod(leaf.extent.constant for leaf in graph.leaves)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the extent of `i\{n\}` is not a number; fix its sizes first"):
        draw_allocation(DomainGraph.of(("i", Sym("n"))))
    with pytest.raises(ValueError, match="4097 cells are more than a picture can show"):
        draw_allocation(DomainGraph.of(("i", MOST_CELLS + 1)))
    wrong = Cells(np.array(["0"]), np.array(["value"]))
    with pytest.raises(ValueError, match=r"the leaves have the shape \(6,\), the cells \(1,\)"):
        draw_allocation(DomainGraph.of(("i", 6)), wrong)
