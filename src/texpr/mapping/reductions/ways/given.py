"""Loops that a schedule ordered: reductions in place, by atomics where that is permitted, or sequential."""

from __future__ import annotations

from texpr.ir.program.marked import atomic, level_of
from texpr.ir.program.updates import accumulators
from texpr.mapping.bands import rebuild
from texpr.mapping.bound import is_own
from texpr.mapping.reductions.way import Case, Rank, Way, as_seq, buffers, invariant, parted, serial
from texpr.mapping.reductions.ways.atomics import may_be_atomic
from texpr.schedule.tree import Body


def _applies(case: Case) -> bool:
    """Whether a schedule put plain loops inside of a reduction, which may then not be interchanged."""
    loops, _ = case.band
    reduced = [bool(p.reduce) for p in loops]
    return reduced != sorted(reduced) and any(level_of(p) is not None or is_own(p) for p in loops)


def _make(case: Case) -> Body:
    loops, body = case.band
    _, reducing = parted(loops)
    found = accumulators(body, buffers(reducing))
    if not invariant(found, reducing, body) and all(may_be_atomic(a, reducing, body) for a in found):
        return rebuild(tuple(atomic(p) if p.reduce else p for p in loops), serial(body))
    return rebuild(tuple(as_seq((p,))[0] if p.reduce else p for p in loops), serial(body))


WAY = Way(Rank.GIVEN, _applies, _make)
