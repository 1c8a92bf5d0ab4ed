"""A team of threads shares the iterations: partial values in registers, which are combined once; the loop is kept.

Where the element may belong to another iteration if there are no reduced ones, a guard is added (`reached`).
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.uses import loads, used
from texpr.mapping.bands import contiguous, rebuild
from texpr.mapping.reductions.reached import where_reached
from texpr.mapping.reductions.way import Case, Rank, Way, serial
from texpr.schedule.tree import Body


def _applies(case: Case) -> bool:
    """Whether a single block runs it: in a nest, or where no memory for parts can be allocated."""
    if not case.is_invariant:
        return False
    if case.plain:
        return case.at_top and _prefers_team(case.plain[-1], case.reducing[-1], case.body)
    return not case.at_top or not case.has_room(case.reducing)


def _make(case: Case) -> Body | None:
    """None where the condition of the update cannot be tested."""
    around, kept = case.around.inside_all(case.plain), rebuild(case.reducing, serial(case.body))
    made = where_reached(case.reducing, case.body, case.found, around, kept)
    return None if made is None else rebuild(case.plain, made)


def _prefers_team(thread: ir.Par, reduced: ir.Par, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether accesses that vary with reduced iterations are contiguous along these and not along outer ones."""
    found = [contiguous(load) for stmt in ir.walk(body) for load in loads(stmt) if reduced.sym in used(load)]
    return any(reduced.sym in syms for syms in found) and not any(thread.sym in syms for syms in found)


WAY = Way(Rank.TEAM, _applies, _make)
