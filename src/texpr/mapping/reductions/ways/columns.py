"""Column sums, whose neighbours are contiguous: one thread each, and where these may be too few, one thread for each part.

par n |j| { par m |i| reduce(s) { s[j] += x[i, j] } }
"""

from __future__ import annotations

from math import inf

from texpr.ir import program as ir
from texpr.ir.program.updates import Accumulator
from texpr.ir.program.uses import loads, used
from texpr.mapping.bands import rebuild
from texpr.mapping.bound import is_asked
from texpr.mapping.reductions.parts import split
from texpr.mapping.reductions.reached import where_reached
from texpr.mapping.reductions.way import Case, Rank, Way, as_seq, most, prefers_thread, serial
from texpr.schedule.tree import Body

THREADS_ENOUGH = 1 << 17
"""The number of threads that suffices without parts."""


def _applies(case: Case) -> bool:
    return case.at_top and case.is_invariant and bool(case.plain)


def _make(case: Case) -> Body | None:
    made = columns(case, case.reducing, case.body, case.found)
    return None if made is None else (*made[0], *rebuild(case.plain, made[1]))


def columns(case: Case, reducing: tuple[ir.Par, ...], body: Body, found: tuple[Accumulator, ...]) -> tuple[Body, Body] | None:
    """The statements for partial sums over `reducing`, before the plain loops, and those that combine them, inside of these."""
    inside, plain, rows = as_seq(reducing), case.plain, case.limits.rows
    if (
        not rows
        or THREADS_ENOUGH <= most(plain) < inf
        or not case.has_room((*plain, *reducing))
        or most(reducing) <= 2 * rows
        or any(map(is_asked, (*plain, *reducing)))
        or not prefers_thread(plain[-1], rebuild(reducing, body))
        or not _reads_each(body, (*plain, *reducing))
        or where_reached(reducing, body, found, case.around.inside_all(plain), body) is not body
    ):
        return None
    ahead, last = split(inside, serial(body), found, rows, case.fresh, plain)
    return ahead, (last,)


def _reads_each(body: tuple[ir.Stmt, ...], loops: tuple[ir.Par, ...]) -> bool:
    """Whether some load varies with all loops, so that it is larger than the partial sums over some of them."""
    every = {loop.sym for loop in loops}
    return any(every <= used(load) for stmt in ir.walk(body) for load in loads(stmt))


WAY = Way(Rank.PARTS, _applies, _make)
