"""A trip count so small that most threads of a team would idle: a thread runs it sequentially, while others run other
iterations.

par n |i| { par 5 |a| reduce(y) { y[i] += … } }   →   par n |i| { seq 5 |a| { y[i] += … } }
"""

from __future__ import annotations

from math import inf

from texpr.ir import program as ir
from texpr.mapping.bands import rebuild
from texpr.mapping.bound import is_asked
from texpr.mapping.reductions.way import Case, Rank, Way, as_seq, most, stay_apart
from texpr.schedule.tree import Body
from texpr.support.record import replace

ENOUGH = 128
"""The number of parallel iterations that suffices, with few sequential ones each."""


def _applies(case: Case) -> bool:
    if not case.at_top or any(map(is_asked, case.band[0])):
        return False
    few = most(case.reducing) * _together(case.body) <= case.limits.few
    return few and most(case.plain) >= ENOUGH and stay_apart(case.plain, case.reducing, case.body)


def _make(case: Case) -> Body:
    return rebuild(case.plain, _in_turn(rebuild(case.reducing, case.body)))


def _together(body: tuple[ir.Stmt, ...]) -> float:
    """The number of parallel iterations of nested `par`s; infinite where a schedule determines their mapping."""
    together = 1.0
    for stmt in body:
        inside = max(map(_together, ir.blocks(stmt)), default=1.0)
        if isinstance(stmt, ir.Par):
            inside *= inf if is_asked(stmt) else max(1, most((stmt,)))
        asked = isinstance(stmt, ir.Instruction) or (isinstance(stmt, ir.New) and stmt.space not in (None, "registers"))
        together = max(together, inf if asked else inside)
    return together


def _in_turn(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """`body` as one thread runs it, with sequential loops."""

    def each(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Par():
                (loop,) = as_seq((stmt,))
                return replace(loop, body=_in_turn(stmt.body))
            case ir.Seq():
                return replace(stmt, body=_in_turn(stmt.body))
            case ir.If():
                return replace(stmt, then=_in_turn(stmt.then), orelse=_in_turn(stmt.orelse))
            case _:
                return stmt

    return tuple(map(each, body))


WAY = Way(Rank.ALONE, _applies, _make)
