"""Statements of a loop that reduce independently: a loop for each (`fission`), which is a reduction of its own."""

from __future__ import annotations

from texpr.mapping.reductions.fission import fission
from texpr.mapping.reductions.way import Case, Rank, Way
from texpr.schedule.tree import Body


def _applies(case: Case) -> bool:
    return case.at_top and not case.is_invariant and not case.plain


def _make(case: Case) -> Body | None:
    parts = fission(case.par, case.fresh)
    return None if parts[0] is case.par else tuple(stmt for part in parts for stmt in case.again(part))


WAY = Way(Rank.CUT, _applies, _make)
