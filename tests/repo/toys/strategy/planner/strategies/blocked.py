"""A nest on a CPU that reads across what it writes, as a transpose: in square blocks, so that each line is used whole.

par n |i| { par m |j| { y[i, j] = x[j, i] } }     split(i, 16), split(j, 16), reorder(i_b, j_b, i_t, j_t)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from texpr.affine.expr import Sym
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest
from texpr.planner.strategies.turned import crossed
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.support.record import Record

SIZES = (16, 8, 4)


class Block(Record):
    """`side` iterations of each of two loops."""

    loops: tuple[Sym, Sym]
    side: int

    def data(self) -> dict[str, Any]:
        """For `explain`."""
        return {"tile": {str(sym): self.side for sym in self.loops}}


class Blocked(Script, kw_only=True):
    """Cuts both loops."""

    block: Block

    def run(self) -> Sequence[Subject]:
        """Follows every directive."""
        outer, inner = list[str](), list[str]()
        for sym in self.block.loops:
            names = self.fresh(sym.name, "b", "t")
            self.must("split", sym.name, self.block.side, results=names)
            outer.append(names[0])
            inner.append(names[1])
        self.must("reorder", *outer, *inner)
        return ()


def _applies(subject: Subject) -> bool:
    return not subject.state.target.has_blocks and isinstance(subject.nest, Nest)


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    """The largest block whose rows and columns fill the nearest cache at most by half; its cost is the lines for an element."""
    assert isinstance(subject.nest, Nest)
    found = crossed(subject.nest)
    if found is None or refused:
        return None
    loops = tuple(par.sym for par in subject.nest.pars if par.sym in (found.across, found.along))
    assert len(loops) == 2
    side = next(size for size in SIZES if 2 * size * size * 8 <= subject.state.target.caches[0] // 2)
    block = Block(loops, side)
    return Proposal(Blocked(subject.state, subject.span, block=block), 2 / side, block)


STRATEGY = Strategy(Rank.TURN, _applies, _propose)
