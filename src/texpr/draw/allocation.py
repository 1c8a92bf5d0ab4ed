"""The memory of a graph logical → allocation: a grid with one cell an element, holes hatched.

The innermost leaves run across, the others down, and each cell shows its item: the item's number in row-major order of the
logical domain, or a value of the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain
from texpr.domain.visits import visits
from texpr.draw.page.labels import label
from texpr.draw.page.picture import Picture, area, document, legend, stacked
from texpr.draw.page.style import CELLS
from texpr.draw.page.svg import Element, group, words
from texpr.draw.page.text import CELL, NAME, SMALL, fit, width
from texpr.support.record import Record

MOST_CELLS = 4096
"""More cells would be illegible."""

ACROSS = 16
"""The target number of cells in a row, for three leaves or more."""

_HIGH = 26.0
_LEAST = 30.0
_GAP = 8.0  # between groups of cells, wider where an outer leaf advances
_ASIDE = 10.0  # between names or indices and what they label
_HEAD = 20.0  # height of a line of indices


class Cells(Record):
    """The text and the class of each cell, a key of `texpr.draw.page.style.CELLS`; one axis a leaf."""

    texts: npt.NDArray[np.str_]
    kinds: npt.NDArray[np.str_]


def draw_allocation(
    graph: DomainGraph, values: Cells | None = None, *, across: int | None = None, title: str = "Allocation"
) -> str:
    """The allocation as an SVG document.

    `values`: the texts of the cells (by default, the item); `across`: the number of innermost leaves that run across. Raises
    ValueError for symbolic extents, for more than MOST_CELLS cells, and where `values` has another shape than the leaves.
    """
    cells = values or held(graph)
    return document(allocation_picture(graph, cells, across=across), title, describe(graph, cells))


def held(graph: DomainGraph) -> Cells:
    """The number of each element's item in row-major order of the logical domain; holes have none."""
    _shape(graph)
    found = visits(graph)
    place = np.zeros(found.visited.shape, np.int64)
    for domain, index in zip(graph.logical, found.logical, strict=True):
        place = place * domain.extent.constant + index
    texts = np.where(found.visited, place.astype(np.str_), "").reshape(found.shape)
    return Cells(texts, np.where(found.visited, "value", "hole").reshape(found.shape))


def describe(graph: DomainGraph, cells: Cells) -> str:
    """The allocation in words: its leaves, and the contents of its elements in memory order."""
    listed = " ".join(str(text) or "hole" for text in cells.texts.flat)
    return f"Allocation [{', '.join(map(label, graph.leaves))}]: {listed}."


def allocation_picture(
    graph: DomainGraph, cells: Cells | None = None, *, across: int | None = None, explained: bool = True
) -> Picture:
    """The grid and, where `explained`, a legend below it. Raises ValueError as `draw_allocation` does."""
    cells = cells or held(graph)
    shape = _shape(graph)
    if cells.texts.shape != shape or cells.kinds.shape != shape:
        raise ValueError(f"the leaves have the shape {shape}, the cells {cells.texts.shape}")
    cut = len(shape) - (_across(shape) if across is None else across)
    high = _Axis.of(graph.leaves[:cut], _HIGH)
    wide = _Axis.of(graph.leaves[cut:], max(_LEAST, *(width(str(t), CELL) + 12 for t in cells.texts.flat), 0.0))
    picture = _grid(wide, high, cells)
    shown = [(kind, CELLS[kind]) for kind in CELLS if kind in cells.kinds]
    return stacked((picture, legend(shown)), 14) if explained and len(shown) > 1 else picture


def _shape(graph: DomainGraph) -> tuple[int, ...]:
    """The extents of the leaves. Raises ValueError where they cannot be drawn."""
    for domain in graph.domains():
        if not domain.extent.is_constant:
            raise ValueError(f"the extent of `{domain}` is not a number; fix its sizes first")
    shape = tuple(leaf.extent.constant for leaf in graph.leaves)
    if np.prod(shape, dtype=object) > MOST_CELLS:
        raise ValueError(f"{np.prod(shape, dtype=object)} cells are more than a picture can show ({MOST_CELLS})")
    return shape


def _across(shape: Sequence[int]) -> int:
    """The number of innermost leaves that run across: one of two, else as many as fit."""
    count, cells = 0, 1
    for extent in reversed(shape):
        if count and (cells * extent > ACROSS or len(shape) <= 2):
            break
        count, cells = count + 1, cells * extent
    return count


class _Axis(Record):
    """One direction of the grid: its leaves, and where each cell along it starts."""

    leaves: tuple[IterDomain, ...]
    starts: tuple[float, ...]
    step: float

    @classmethod
    def of(cls, leaves: Sequence[IterDomain], step: float) -> _Axis:
        """Cells of size `step`, with a gap wherever a leaf other than the innermost advances, wider for outer ones."""
        starts = [0.0]
        extents = [leaf.extent.constant for leaf in leaves]
        count = int(np.prod(extents, dtype=np.int64))
        for at in range(1, count):
            turned, period = 0, 1
            for extent in reversed(extents):
                period *= extent
                turned += at % period == 0
            starts.append(starts[-1] + step + turned * _GAP)
        return cls(tuple(leaves), tuple(starts) if count else (), step)

    @property
    def length(self) -> float:
        return self.starts[-1] + self.step if self.starts else 0.0

    def runs(self, depth: int) -> list[tuple[int, float, float]]:
        """Each run of cells with one index of the leaf at `depth`: the index, its start and its end."""
        extents = [leaf.extent.constant for leaf in self.leaves]
        period = int(np.prod(extents[depth + 1 :], dtype=np.int64))
        firsts = range(0, len(self.starts), period) if period else range(0)
        return [(at // period % extents[depth], self.starts[at], self.starts[at + period - 1] + self.step) for at in firsts]


def _grid(wide: _Axis, high: _Axis, cells: Cells) -> Picture:
    """Cells with the indices of the leaves above and to the left of them, and the leaves' names before these."""
    columns = [width(_name(leaf), NAME) + 2 * _ASIDE for leaf in high.leaves]
    lead = max(sum(columns), *(width(_name(leaf), NAME) + 2 * _ASIDE for leaf in wide.leaves), 0.0)
    top = _HEAD * (len(wide.leaves) + bool(high.leaves)) + 4
    body: list[Element] = []
    for depth, leaf in enumerate(wide.leaves):
        middle = _HEAD * (depth + 0.5)
        body.append(words(_name(leaf), lead - _ASIDE, middle, NAME, anchor="end"))
        body += [words(str(i), lead + (a + b) / 2, middle, SMALL, anchor="middle") for i, a, b in wide.runs(depth)]
    end = lead - sum(columns) - _ASIDE
    for depth, leaf in enumerate(high.leaves):
        end += columns[depth]
        body.append(words(_name(leaf), end, top - 4 - _HEAD / 2, NAME, anchor="end"))
        body += [words(str(i), end, top + (a + b) / 2, SMALL, anchor="end") for i, a, b in high.runs(depth)]
    shape = len(high.starts), len(wide.starts)
    body.append(group(*_filled(wide, high, cells.texts.reshape(shape), cells.kinds.reshape(shape)), x=lead, y=top))
    return Picture(lead + wide.length + 1, top + high.length + 1, tuple(body))


def _name(leaf: IterDomain) -> str:
    return fit(label(leaf), 24)


def _filled(wide: _Axis, high: _Axis, texts: npt.NDArray[np.str_], kinds: npt.NDArray[np.str_]) -> list[Element]:
    """Every cell, row by row."""
    found: list[Element] = []
    for row, y in enumerate(high.starts):
        for column, x in enumerate(wide.starts):
            found += area(str(kinds[row, column]), x, y, wide.step, high.step)
            if text := str(texts[row, column]):
                found.append(words(text, x + wide.step / 2, y + high.step / 2, CELL, anchor="middle"))
    return found
