"""Vectors for a nest that no tile is worth: several neighbouring elements an access, where the text lets that be proved.

    par n |i| { z[i] = a * x[i] + y[i] }        vectorize(i, 4) -> (i_part, i_lane)

The innermost `par` moves each access along its last subscript by one element, or not at all. Whether rows begin where a vector
can, the directive proves or refuses; not so of a local, of which it does not know yet where it will live.
"""

from __future__ import annotations

from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.planner.follow import Follower
from texpr.planner.nest import Nest, Touch


class Wide(Follower, kw_only=True):
    """Makes vectors of the innermost iterations of `nest`."""

    nest: Nest

    def run(self) -> None:
        """Follows the directive, if there is one to be tried."""
        lanes = _lanes(self.nest, self.state.target.vector)
        if lanes > 1:
            name = self.nest.pars[-1].sym.name
            self.may("vectorize", name, lanes, results=self.fresh(name, "part", "lane"))


def _lanes(nest: Nest, width: int) -> int:
    """How many elements the widest access of `width` bytes has, where all that moves may move so many at once."""
    if nest.seqs or not nest.pars or any(t.updates for t in nest.touches):
        return 1
    loop = nest.pars[-1]
    moving = [t for t in nest.touches if t.along(loop.sym) and t.buffer not in nest.local]
    if not moving or not all(_by_one(t, loop) for t in moving):
        return 1
    lanes = width // max(t.buffer.dtype.bytes for t in moving)
    if not all(_begins_even(t, lanes, nest.known) for t in moving if t.buffer.role == "local"):
        return 1
    return lanes if nest.trips[loop.sym] >= lanes else 1


def _by_one(touch: Touch, loop: ir.Loop) -> bool:
    """Whether one iteration of `loop` on is one element on."""
    if not touch.index:
        return False
    *outer, last = touch.index
    return last.steps.get(loop.sym) == 1 and not any(each.varies(loop.sym) for each in outer)


def _begins_even(touch: Touch, lanes: int, known: Known) -> bool:
    """Whether every row of a dense buffer, and what `touch` begins with in it, lies at a multiple of `lanes` elements."""
    assert touch.index
    base = touch.index[-1].base
    return known.multiple(base, lanes) and (len(touch.shape) == 1 or known.multiple(touch.shape[-1], lanes))
