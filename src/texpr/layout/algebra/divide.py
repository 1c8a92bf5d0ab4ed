"""Divide: a layout seen as tiles, and the starts of the tiles.

    logical_divide(A, B) = A ∘ (B, B*)        B* = complement of B in the size of A

The first mode runs through one tile, the second through the tiles. The other divides have the same modes in another order:

    logical   ((tile₀, rest₀), (tile₁, rest₁), …)
    zipped    ((tile₀, tile₁, …), (rest₀, rest₁, …))
    tiled     ((tile₀, tile₁, …), rest₀, rest₁, …)
    flat      (tile₀, tile₁, …, rest₀, rest₁, …)
"""

from __future__ import annotations

from texpr.affine.facts import Known
from texpr.layout.algebra.complement import complement_by
from texpr.layout.algebra.compose import Tiler, by_mode, composition
from texpr.layout.error import LayoutError, during
from texpr.layout.layout import Layout
from texpr.layout.modes import ungroup
from texpr.layout.proof import NOTHING, Prover
from texpr.layout.slices import All


def logical_divide(layout: Layout, tiler: Tiler, known: Known = NOTHING) -> Layout:
    """R with R(t, r) = layout(tiler(t) + complement(r)): every element of `layout` once, in tiles.

    With a tuple each mode is divided by itself, and modes beyond it stay. Raises LayoutError where the tiler repeats a
    coordinate, or its tiles do not cover the layout.
    """
    return by_mode("divide", layout, tiler, lambda mode, tile: _divided(mode, tile, known))


def _divided(layout: Layout, tile: Layout, known: Known) -> Layout:
    size = layout.size
    prover = Prover(known, layout, tile)
    with during("divide"):
        both = Layout.of(tile, complement_by(prover, tile, size))
        if not prover.equal(both.size, size):
            raise LayoutError("divide", f"{tile} repeats coordinates: with what it leaves out it has {both.size}, not {size}")
        return composition(layout, both, known)


def zipped_divide(layout: Layout, tiler: Tiler, known: Known = NOTHING) -> Layout:
    """`logical_divide` with the modes of the tile gathered in mode 0, and those of the rest in mode 1."""
    return zipped(logical_divide(layout, tiler, known), tiler)


def tiled_divide(layout: Layout, tiler: Tiler, known: Known = NOTHING) -> Layout:
    """`zipped_divide` with the modes of the rest ungrouped."""
    return ungroup(zipped_divide(layout, tiler, known), 1)


def flat_divide(layout: Layout, tiler: Tiler, known: Known = NOTHING) -> Layout:
    """`zipped_divide` with all modes ungrouped."""
    return ungroup(tiled_divide(layout, tiler, known), 0)


def zipped(pairs: Layout, tiler: Tiler) -> Layout:
    """Pairs of modes, one for each entry of `tiler`, as a pair of modes; modes without an entry join the second."""
    if not isinstance(tiler, tuple):
        return pairs
    firsts: list[Layout] = []
    seconds: list[Layout] = []
    for place, mode in enumerate(pairs.modes):
        part = tiler[place] if place < len(tiler) else None
        if part is None or isinstance(part, All):
            seconds.append(mode)
        else:
            first, second = zipped(mode, part).modes
            firsts.append(first)
            seconds.append(second)
    return Layout.of(Layout.of(*firsts), Layout.of(*seconds))
