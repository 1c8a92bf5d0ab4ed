"""Counts, as sums of integers over many iterations that seldom add: by atomics, with no memory for parts and one kernel."""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.marked import atomic
from texpr.mapping.bands import rebuild
from texpr.mapping.reductions.way import Case, Rank, Way, serial
from texpr.mapping.reductions.ways.atomics import may_be_atomic
from texpr.schedule.tree import Body


def _applies(case: Case) -> bool:
    """Whether all that is done is done under a test."""
    seldom = all(isinstance(stmt, ir.If) for stmt in case.body)
    alone = case.at_top and case.is_invariant and bool(case.reducing) and not case.plain
    return alone and seldom and all(may_be_atomic(each, case.reducing, case.body) for each in case.found)


def _make(case: Case) -> Body:
    return rebuild(tuple(map(atomic, case.reducing)), serial(case.body))


WAY = Way(Rank.ATOMIC, _applies, _make)
