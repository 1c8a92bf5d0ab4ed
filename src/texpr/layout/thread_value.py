"""Thread-value layouts: which thread holds which element of a tile, as which of its values."""

from __future__ import annotations

from texpr.affine.facts import Known
from texpr.layout.algebra.compose import composition
from texpr.layout.algebra.inverse import contiguous, right_inverse
from texpr.layout.algebra.product import raked_product
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int
from texpr.layout.layout import Layout
from texpr.layout.proof import NOTHING, Prover


def thread_value(threads: Layout, values: Layout, known: Known = NOTHING) -> tuple[tuple[Int, ...], Layout]:
    """`(tile, tv)`: a tile in which each thread holds a block, and tv(thread, value) = the element's 1-D coordinate in it.

    `threads` maps coordinates of blocks to the number of the thread, `values` those of a block to the number of the value.
    Raises LayoutError where either is not a bijection onto the numbers from 0.
    """
    for each in (threads, values):
        if not Prover(known, each).equal(contiguous(each, known).size, each.size):
            reason = f"{each} does not number its {each.size} coordinates from 0 on, each once"
            raise LayoutError("thread value", reason, help="give it the strides of a compact layout, in any order")
    tile = raked_product(threads, values, known)
    order = Layout((threads.size, values.size))
    return tuple(mode.size for mode in tile.modes), composition(right_inverse(tile, known), order, known)
