"""At the top of a program: blocks reduce chunks into a buffer of partial values, then one block combines those (`parts`)."""

from __future__ import annotations

from texpr.mapping.reductions.parts import split
from texpr.mapping.reductions.reached import where_reached
from texpr.mapping.reductions.way import Case, Rank, Way, serial
from texpr.schedule.tree import Body


def _applies(case: Case) -> bool:
    return case.at_top and case.is_invariant and not case.plain and case.has_room(case.reducing)


def _make(case: Case) -> Body | None:
    """None where the condition of the update cannot be tested."""
    (*memory, parts), last = split(case.reducing, serial(case.body), case.found, case.limits.chunk, case.fresh)
    made = where_reached(case.reducing, case.body, case.found, case.around, (parts, last))
    return None if made is None else (*memory, *made)


WAY = Way(Rank.PARTS, _applies, _make)
