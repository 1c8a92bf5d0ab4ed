"""Thread-value layouts: which element of a tile a thread holds as which of its values."""

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

    `threads` gives the number of the thread at each coordinate of blocks, `values` that of the value at each coordinate of a
    block. Raises LayoutError where either does not number its coordinates from 0 on, each once.
    """
    for each in (threads, values):
        if not Prover(known, each).equal(contiguous(each, known).size, each.size):
            reason = f"{each} does not number its {each.size} coordinates from 0 on, each once"
            raise LayoutError("thread value", reason, help="give it the strides of a compact layout, in any order")
    tile = raked_product(threads, values, known)
    order = Layout((threads.size, values.size))
    return tuple(mode.size for mode in tile.modes), composition(right_inverse(tile, known), order, known)
