"""Sums computed sequentially by one thread, so that tiles of them stay in registers: a matrix product whose `par` reduces.

    par M |i| { par N |j| { C[i, j] = 0; par K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] } } }

A parallel reduction is best where each element is read once, as in the product of a matrix and a vector. Where iterations of
the `par`s around it read the same elements, a tile of sums reads less: then k is made `serial`, and the nest is tiled like
any other. It is applied where iterations share elements of each array, and there are enough sums for all threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from texpr.ir import program as ir
from texpr.planner.follow import Refused
from texpr.planner.nest import NOMINAL, Nest, NoPlan, Touch, nests
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.schedule.rewrite.materialise import materialise
from texpr.support.record import replace

SUMS = 4096
"""The number of sums that suffices for a thread each: a tile of 64 × 64."""


def shared_sums(par: ir.Par) -> tuple[ir.Par, ...]:
    """The reducing loops of the nest of `par` that should be sequential; none where a parallel reduction is better."""
    way = _way(par)
    plain = [p for p in way if not p.reduce]
    if not plain or len(plain) == len(way) or any(p.fully or p.directives for p in way):
        return ()
    sums = prod(p.extent.constant if p.extent.is_constant else NOMINAL for p in plain)
    return () if sums < SUMS else tuple(way)


def reads_once(nest: Nest) -> bool:
    """Whether there is a buffer of which no two iterations of a nest read the same element, by its subscripts."""

    def apart(touch: Touch) -> bool:
        return touch.index is None or sum(bool(each.steps or each.bent) for each in touch.index) >= len(nest.loops)

    return any(touch.reads and apart(touch) for touch in nest.touches)


def _way(par: ir.Par) -> list[ir.Par]:
    """The perfectly nested `par`s from `par` inward."""
    found = [par]
    while len(inner := [s for s in found[-1].body if isinstance(s, ir.Par)]) == 1:
        found.append(inner[0])
    return found


class Ordered(Script, kw_only=True):
    """Makes the reducing loops of `way` sequential, and innermost."""

    subject: Subject
    way: tuple[ir.Par, ...]

    def run(self) -> Sequence[Subject]:
        """Applies every directive, and leaves the new nest to be tiled. Raises Refused, or NoPlan."""
        for loop in self.way:
            if loop.reduce:
                self.must("serial", loop.sym.name)
        order = sorted(self.way, key=lambda loop: bool(loop.reduce))
        if order != [*self.way]:
            self.must("reorder", *(loop.sym.name for loop in order))
        sym = order[0].sym
        par, nest = next(found for found in nests(materialise(self.state).function) if found[0].sym is sym)
        if isinstance(nest, NoPlan):
            raise nest
        if reads_once(nest):
            raise NoPlan("something is read once, so threads had better share sums")
        return (replace(self.subject, par=par, nest=nest, tiles_only=True),)


def _applies(subject: Subject) -> bool:
    return isinstance(subject.nest, NoPlan) and bool(shared_sums(subject.par))


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    if refused:
        return None
    return Proposal(Ordered(subject.state, subject.span, subject=subject, way=shared_sums(subject.par)))


STRATEGY = Strategy(Rank.TILE, _applies, _propose)
