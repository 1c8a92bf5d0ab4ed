"""Sums over rows that have sums of their own: rows first, each with its own result in memory, and then the sum over rows.

    par M |i| reduce(s) { new t: f32 = 0.0  par N |j| reduce(t) { t += X[i, j] * X[i, j] }  s += sqrt(t) }

As the sum over i is shared by all threads, each of them would do whole rows alone. With a loop of its own a row is a team's, as
any other row is, and `s += sqrt(t[i])` is a sum like any other: both are planned so, and what goes to memory between them is a
number or two a row. The order of the sum is free, so `distribute` is proved of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from texpr.ir import program as ir
from texpr.ir.program.uses import touched
from texpr.ir.value import Buffer
from texpr.planner.follow import Refused
from texpr.planner.nest import NoPlan
from texpr.planner.strategies.phases import Phased, Phases, way_of
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.schedule.tree import Body


def rows(par: ir.Par, few: int) -> Phases | None:
    """What rows of the nest of `par` do by themselves, and what they add to sums over all of them, as phases. `few`: so many
    iterations of a row are one thread's in any case."""
    way = way_of(par)
    if not way[-1].reduce or any(p.fully or p.directives for p in way):
        return None
    sums = frozenset(buffer for p in way for buffer in p.reduce)
    groups = [(adds, tuple(found)) for adds, found in groupby(_statements(way[-1]), lambda s: bool(touched((s,)) & sums))]
    if not any(_has_rows(body, few) for adds, body in groups if not adds) or not any(adds for adds, _ in groups):
        return None
    if any(_crosses(s.buffer, [body for _, body in groups]) for s in way[-1].body if isinstance(s, ir.New)):
        return None
    return Phases(tuple(way), tuple(len(body) for _, body in groups))


def _statements(par: ir.Par) -> Iterator[ir.Stmt]:
    return (s for s in par.body if not isinstance(s, ir.New))


def _has_rows(body: Body, few: int) -> bool:
    """Whether threads may share what is done."""
    loops = (s for s in ir.walk(body) if isinstance(s, ir.Par))
    return any(not p.extent.is_constant or p.extent.constant > few for p in loops)


def _crosses(buffer: Buffer, groups: Sequence[Body]) -> bool:
    """Whether a whole array of each row would go through memory."""
    return buffer.rank > 0 and sum(buffer in touched(body) for body in groups) > 1


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_warps and isinstance(subject.nest, NoPlan) and not subject.is_part


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    found = None if refused else rows(subject.par, subject.state.target.reductions.few)
    if found is None:
        return None
    return Proposal(Phased(subject.state, subject.span, phases=found, pays=True), said="rows first, then the sum over them")


STRATEGY = Strategy(Rank.PARTS, _applies, _propose)
