"""Vectors for a nest that no tile is worth: several neighbouring elements an access, where the text lets that be proved.

    par n |i| { z[i] = a * x[i] + y[i] }        vectorize(i, 4) -> (i_part, i_lane)

The innermost `par` moves each access along its last subscript by one element, or not at all. Whether rows begin where a vector
can, the directive proves or refuses; not so of a local, of which it does not know yet where it will live.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest, Touch
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject


class Wide(Script, kw_only=True):
    """Makes vectors of so many iterations of `inner`."""

    inner: ir.Loop
    lanes: int

    def run(self) -> Sequence[Subject]:
        """Follows the directive, unless it is refused."""
        name = self.inner.sym.name
        self.may("vectorize", name, self.lanes, results=self.fresh(name, "part", "lane"))
        return ()


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


def _applies(subject: Subject) -> bool:
    is_plain = isinstance(subject.nest, Nest) and not subject.nest.whole and not subject.tiles_only
    return subject.state.target.has_blocks and is_plain


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    assert isinstance(subject.nest, Nest), "as it applies"
    lanes = 1 if refused else _lanes(subject.nest, subject.state.target.vector)
    if lanes < 2:
        return None
    script = Wide(subject.state, subject.span, inner=subject.nest.pars[-1], lanes=lanes)
    return Proposal(script, said="neighbouring elements are vectors")


STRATEGY = Strategy(Rank.VECTOR, _applies, _propose)
