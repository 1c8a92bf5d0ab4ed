"""Loops that do not reduce: reductions in their body are arranged for the team of threads, or for the thread of each
iteration."""

from __future__ import annotations

from math import inf

from texpr.ir import program as ir
from texpr.ir.program.updates import Accumulator, accumulators
from texpr.ir.program.uses import bound, loads, symbols, written
from texpr.mapping.bands import band, rebuild
from texpr.mapping.bound import is_asked
from texpr.mapping.reductions.way import Case, Rank, Way, buffers, invariant, most, prefers_thread, serial
from texpr.mapping.reductions.ways.columns import THREADS_ENOUGH, columns
from texpr.schedule.tree import Body


def _make(case: Case) -> Body:
    plain, body = case.plain, case.body
    if not case.at_top or (_has_threads(case) and prefers_thread(plain[-1], body)):
        return rebuild(plain, serial(body))
    ahead, body = _ahead(case)
    return (*ahead, *rebuild(plain, case.team(body, case.around.inside_all(plain))))


def _has_threads(case: Case) -> bool:
    """Whether a thread for each iteration occupies the machine, so that nothing is gained by parts: on a CPU at once, elsewhere
    where there are many, and threads share nothing else, and nobody asked that they do."""
    if not case.limits.rows:
        return True
    inside = [s for s in ir.walk(case.body) if isinstance(s, ir.Par | ir.Instruction)]
    alone = all(isinstance(s, ir.Par) and s.reduce and not is_asked(s) for s in inside) and not any(map(is_asked, case.plain))
    return alone and THREADS_ENOUGH <= most(case.plain) < inf


def _ahead(case: Case) -> tuple[Body, Body]:
    """Independent sums of the body, in parts before it."""
    ahead, inside = list[ir.Stmt](), list[ir.Stmt]()
    for stmt in case.body:
        loops, inner = band(stmt) if isinstance(stmt, ir.Par) else ((), ())
        found = accumulators(inner, buffers(loops))
        if (
            loops
            and all(p.reduce for p in loops)
            and invariant(found, loops, inner)
            and _is_alone(loops, inner, found, case.body)
        ):
            made = columns(case, loops, inner, found)
            if made is not None:
                ahead += made[0]
                inside += made[1]
                continue
        inside.append(stmt)
    return tuple(ahead), tuple(inside)


def _is_alone(
    loops: tuple[ir.Par, ...], inner: tuple[ir.Stmt, ...], found: tuple[Accumulator, ...], body: tuple[ir.Stmt, ...]
) -> bool:
    """Whether a sum in `body` reads nothing that `body` writes, so that it may be hoisted."""
    own = {target.buffer for each in found for target in each.targets}
    read = {load.buffer for stmt in ir.walk(inner) for load in loads(stmt)}
    here = bound(body) - bound(rebuild(loops, inner))
    return not (read - own) & written(body) and not symbols(rebuild(loops, inner)) & here


WAY = Way(Rank.PLAIN, lambda case: not case.reducing, _make)
