"""Vectorization of a nest that is not tiled: several neighbouring elements an access, where that can be proved.

    par n |i| { z[i] = a * x[i] + y[i] }        vectorize(i, 4) -> (i_part, i_lane)

The innermost `par` moves the last subscript of each access by one element, or leaves it unchanged. The directive checks the
alignment of rows, except for a local, whose placement is not known yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest, Touch
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject


class Wide(Script, kw_only=True):
    """Vectorizes `inner` with so many lanes."""

    inner: ir.Loop
    lanes: int

    def run(self) -> Sequence[Subject]:
        """Applies the directive, unless it is refused."""
        name = self.inner.sym.name
        self.may("vectorize", name, self.lanes, results=self.fresh(name, "part", "lane"))
        return ()


def _lanes(nest: Nest, width: int) -> int:
    """The elements of the widest access of `width` bytes, at most as many as every access allows."""
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
    """Whether consecutive iterations of `loop` access consecutive elements."""
    if not touch.index:
        return False
    *outer, last = touch.index
    return last.steps.get(loop.sym) == 1 and not any(each.varies(loop.sym) for each in outer)


def _begins_even(touch: Touch, lanes: int, known: Known) -> bool:
    """Whether every row of a dense buffer, and the start of `touch` in it, is aligned to `lanes` elements."""
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
