"""Rearrangements of modes: the value at a leaf's coordinate stays the same."""

from __future__ import annotations

from texpr.layout.algebra.coalesce import from_modes
from texpr.layout.basis import Path
from texpr.layout.error import LayoutError
from texpr.layout.layout import Layout


def flat(layout: Layout) -> Layout:
    """The leaves as modes."""
    return layout if layout.is_leaf else Layout(tuple(m.size for m in layout.flat), tuple(m.stride for m in layout.flat))


def group(layout: Layout, first: int, last: int) -> Layout:
    """Modes first ≤ k < last grouped as one mode. Raises LayoutError for an invalid range."""
    modes = layout.modes
    if not 0 <= first < last <= len(modes):
        raise LayoutError("group", f"{layout} has no modes {first} to {last}", help=f"it has {len(modes)}")
    return Layout.of(*modes[:first], Layout.of(*modes[first:last]), *modes[last:])


def ungroup(layout: Layout, place: int) -> Layout:
    """Mode `place` replaced by its own modes."""
    inner = layout[place].modes
    return Layout.of(*layout.modes[:place], *inner, *layout.modes[place + 1 :])


def append(layout: Layout, *modes: Layout) -> Layout:
    """More modes at the end."""
    return Layout.of(*layout.modes, *modes)


def padded(layout: Layout, rank: int) -> Layout:
    """The layout with modes 1:0 at its end, until it has `rank` modes."""
    return append(layout, *(Layout(1, 0) for _ in range(rank - layout.rank))) if layout.rank < rank else layout


def select(layout: Layout, *places: int | Path) -> Layout:
    """The named modes, in this order; a single one is not wrapped. Raises LayoutError for an invalid mode."""
    found = [layout[place] for place in places]
    return found[0] if len(found) == 1 else Layout.of(*found) if found else from_modes(())
