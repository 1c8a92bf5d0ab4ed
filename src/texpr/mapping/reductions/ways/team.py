"""A team of threads shares the iterations: partial values in registers, which are joined once; the loop is kept as it is.

Where the element may be somebody else's in case of no iteration, a test is ahead of it (`reached`).
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.uses import loads, used
from texpr.mapping.bands import contiguous, rebuild
from texpr.mapping.reductions.reached import where_reached
from texpr.mapping.reductions.way import Case, Rank, Way, serial
from texpr.schedule.tree import Body


def _applies(case: Case) -> bool:
    """Whether it is one block that does it: in a nest, or where no memory for parts can be set aside."""
    if not case.is_invariant:
        return False
    if case.plain:
        return case.at_top and _prefers_team(case.plain[-1], case.reducing[-1], case.body)
    return not case.at_top or not case.has_room(case.reducing)


def _make(case: Case) -> Body | None:
    """None where threads could not tell whether there is an iteration."""
    around, kept = case.around.inside_all(case.plain), rebuild(case.reducing, serial(case.body))
    made = where_reached(case.reducing, case.body, case.found, around, kept)
    return None if made is None else rebuild(case.plain, made)


def _prefers_team(thread: ir.Par, reduced: ir.Par, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether, of what differs by reduced iteration, neighbours read neighbours in these and not in outer ones."""
    found = [contiguous(load) for stmt in ir.walk(body) for load in loads(stmt) if reduced.sym in used(load)]
    return any(reduced.sym in syms for syms in found) and not any(thread.sym in syms for syms in found)


WAY = Way(Rank.TEAM, _applies, _make)
