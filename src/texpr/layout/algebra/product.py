"""Product: copies of a layout, arranged by another layout.

    logical_product(A, B) = (A, A* ∘ B)        A* = complement of A: where copies of A fit

The first mode runs through one copy, the second through the copies.
"""

from __future__ import annotations

from texpr.affine.expr import IntoExpr
from texpr.affine.facts import Known
from texpr.layout.algebra.complement import complement, filled_by
from texpr.layout.algebra.compose import Tiler, by_mode, composition
from texpr.layout.algebra.cosize import cosize
from texpr.layout.algebra.divide import zipped
from texpr.layout.error import LayoutError, during
from texpr.layout.inttuple import Int, tidy, times
from texpr.layout.layout import Layout
from texpr.layout.modes import padded, ungroup
from texpr.layout.proof import NOTHING, Prover


def logical_product(layout: Layout, tiler: Tiler, known: Known = NOTHING) -> Layout:
    """R with R(i, j) = layout(i) + start(tiler(j)), where start(0) < start(1) < … are the places for copies.

    Copies do not overlap. With a tuple each mode is multiplied by itself. Raises LayoutError where the modes of `layout`
    overlap or interleave, or `tiler` cannot be composed with the starts.
    """
    return by_mode("product", layout, tiler, lambda mode, copies: _multiplied(mode, copies, known))


def _multiplied(layout: Layout, copies: Layout, known: Known) -> Layout:
    """The cotarget filled block · cosize(copies) suffices: the complement then has a start for each copy."""
    with during("product"):
        room = times(filled_by(layout, known), cosize(copies, known))
        return Layout.of(layout, composition(complement(layout, room, known), copies, known))


def zipped_product(layout: Layout, tiler: Tiler, known: Known = NOTHING) -> Layout:
    """`logical_product` with the modes of the block gathered in mode 0, and those of the copies in mode 1."""
    return zipped(logical_product(layout, tiler, known), tiler)


def tiled_product(layout: Layout, tiler: Tiler, known: Known = NOTHING) -> Layout:
    """`zipped_product` with the modes of the copies ungrouped."""
    return ungroup(zipped_product(layout, tiler, known), 1)


def flat_product(layout: Layout, tiler: Tiler, known: Known = NOTHING) -> Layout:
    """`zipped_product` with all modes ungrouped."""
    return ungroup(tiled_product(layout, tiler, known), 0)


def blocked_product(block: Layout, tiler: Layout, known: Known = NOTHING) -> Layout:
    """Mode k of the block and mode k of the copies as one mode, the block fastest: whole blocks side by side."""
    return _interleaved(block, tiler, known, block_first=True)


def raked_product(block: Layout, tiler: Layout, known: Known = NOTHING) -> Layout:
    """Mode k of the copies and mode k of the block as one mode, the copies fastest: blocks interleaved, like the teeth of a
    rake."""
    return _interleaved(block, tiler, known, block_first=False)


def _interleaved(block: Layout, tiler: Layout, known: Known, *, block_first: bool) -> Layout:
    rank = max(block.rank, tiler.rank)
    whole, copies = padded(block, rank), padded(tiler, rank)
    inner, outer = logical_product(whole, copies, known).modes
    inners = (inner,) if whole.is_leaf else inner.modes
    outers = (outer,) if copies.is_leaf else outer.modes
    pairs = [Layout.of(b, c) if block_first else Layout.of(c, b) for b, c in zip(inners, outers, strict=True)]
    return pairs[0] if whole.is_leaf and copies.is_leaf else Layout.of(*pairs)


def ordered_layout(shape: tuple[Int, ...], order: tuple[int, ...] | None = None) -> Layout:
    """The compact layout whose mode with the least `order` is fastest; the leftmost by default. Raises LayoutError."""
    if order is None:
        return Layout(shape)
    if len(shape) != len(order):
        raise LayoutError("order", f"{len(order)} numbers for {len(shape)} modes")
    strides: list[Int] = [1] * len(shape)
    filled: Int = 1
    for place in sorted(range(len(shape)), key=lambda k: order[k]):
        strides[place] = filled
        filled = times(filled, shape[place])
    return Layout(shape, tuple(strides))


def tile_to_shape(
    block: Layout, shape: tuple[IntoExpr, ...], order: tuple[int, ...] | None = None, known: Known = NOTHING
) -> Layout:
    """Copies of `block` that fill `shape`, mode by mode, in `order` (colexicographic by default).

    Raises LayoutError where the size of a mode of the block does not divide that of the shape.
    """
    sizes = [tidy(size) for size in shape]
    if block.rank > len(sizes):
        raise LayoutError("tile to shape", f"{block} has more modes than a shape of {len(sizes)}")
    whole, prover = padded(block, len(sizes)), Prover(known, block)
    counts: list[Int] = []
    for place, (mode, size) in enumerate(zip(whole.modes, sizes, strict=True)):
        if not prover.divides(mode.size, size):
            reason = f"{mode.size} of the block is not proved to divide {size} of the shape"
            raise LayoutError("tile to shape", reason, mode=(place,), help=f"pad the shape to a multiple of {mode.size}")
        counts.append(prover.quotient(size, mode.size))
    return blocked_product(whole, ordered_layout(tuple(counts), order), known)
