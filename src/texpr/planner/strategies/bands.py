"""Vectors in the innermost loops of a nest: several, one beside the other, or one that is a sum, or reads where data say.

    par M |i| { … par N |j| reduce(s) { s += X[i, j] } … par N |k| { Y[i, k] = X[i, k] * s } }

Lanes of a warp have neighbouring vectors of a row, where rows begin at multiples of them, and so many that a warp is busy. How
threads meet in sums is left to the mapping.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.isa.target import Target
from texpr.planner.follow import Refused
from texpr.planner.nest import NOMINAL
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.planner.vectors import rows_begin_even
from texpr.relation.collect import model
from texpr.relation.model import Access
from texpr.support.record import Record


class Band(Record):
    """A loop whose neighbours are `lanes` elements of vectors."""

    loop: ir.Par
    lanes: int


class Bands(Script, kw_only=True):
    """Vectorizes each loop of `bands`, as far as that can be proved."""

    bands: tuple[Band, ...]

    def run(self) -> Sequence[Subject]:
        """Applies every directive, unless it is refused."""
        for band in self.bands:
            name = band.loop.sym.name
            self.may("vectorize", name, band.lanes, results=self.fresh(name, "part", "lane"))
        return ()


def bands(par: ir.Par, function: ir.Function, target: Target) -> tuple[Band, ...]:
    """The innermost loops of a nest of `function` in which vectors of a row may be moved. Other nests say nothing about it.

    None is inside of a sum to which it adds elements, if that is all there is around it: the host would do the sum, in turns.
    """
    found: dict[ir.Par, tuple[list[Access], Known]] = {}
    for instance in model(function).instances:
        loop = instance.loops[-1] if instance.loops and par in instance.loops else None
        if isinstance(loop, ir.Par) and not loop.fully and not loop.directives and (loop.reduce or not par.reduce):
            accesses, _ = found.setdefault(loop, ([], instance.known))
            accesses += instance.accesses
    made = (Band(loop, _lanes(loop, accesses, known, target)) for loop, (accesses, known) in found.items())
    return tuple(band for band in made if band.lanes > 1)


def _lanes(loop: ir.Par, accesses: Sequence[Access], known: Known, target: Target) -> int:
    """The elements of a vector of the widest type, if each row begins at a multiple of it; half, where a row has not one for
    each lane of a warp. Rows that data choose are only read, as no proof tells vectors of such results apart."""
    if any(isinstance(stmt, ir.Par | ir.Seq) for stmt in ir.walk(loop.body)):
        return 1
    if any(access.writes and access.load.data for access in accesses):
        return 1
    loads = [access.load for access in accesses]
    moving = [load for load in loads if load.buffer.rank and loop.sym in load.index[-1].syms()]
    lanes = target.vector // max((load.dtype.bytes for load in moving), default=target.vector)
    trips = loop.extent.constant if loop.extent.is_constant else NOMINAL
    outside = [load.buffer for load in moving if load.buffer.role != "local"]
    if trips < lanes * target.warp and len(outside) == len(moving):  # a local in vectors is in shared memory
        lanes //= 2
    given = any(buffer.role in ("input", "inout") for buffer in outside)  # or nobody promised anything
    even = given and all(rows_begin_even(buffer, lanes, known) for buffer in outside)
    return lanes if even and trips >= lanes * target.warp else 1


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_warps and not subject.tiles_only


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    found = () if refused else bands(*subject.alone(), subject.state.target)
    if not found:
        return None
    return Proposal(Bands(subject.state, subject.span, bands=found), said="neighbouring elements are vectors")


STRATEGY = Strategy(Rank.LOOP, _applies, _propose)
