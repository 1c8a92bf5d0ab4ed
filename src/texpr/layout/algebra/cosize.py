"""The size of a layout's codomain."""

from __future__ import annotations

from texpr.affine.facts import Known
from texpr.layout.basis import Path, assembled
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, IntTree, minus, plus
from texpr.layout.layout import Layout
from texpr.layout.proof import NOTHING, Prover


def cosize(layout: Layout, known: Known = NOTHING) -> Int:
    """The extent from the least to the greatest value: the greatest plus one, where no stride is negative.

    Raises LayoutError for basis strides, and where the sign of a stride is not known.
    """
    found = coshape(layout, known)
    if isinstance(found, tuple):
        raise LayoutError("cosize", f"{layout} gives coordinates, not numbers", help="take `coshape`")
    return found


def coshape(layout: Layout, known: Known = NOTHING) -> IntTree:
    """`cosize` of each entry of the values; 1 for an entry without a stride. Raises LayoutError as `cosize` does."""
    prover = Prover(known, layout)
    found: dict[Path, Int] = {}
    for mode in layout.flat:
        if mode.stride == 0:
            continue
        last = prover.last(mode.size, mode.step)
        if prover.at_most(0, mode.step):
            found[mode.path] = plus(found.get(mode.path, 1), last)
        elif prover.at_most(mode.step, 0):
            found[mode.path] = minus(found.get(mode.path, 1), last)
        else:
            raise LayoutError("cosize", f"the sign of the stride {mode.stride} of {layout} is not known")
    return assembled(found, 1)
