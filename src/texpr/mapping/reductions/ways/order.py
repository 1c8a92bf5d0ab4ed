"""Sequentially, which is always right: by the thread that owns the element, or outermost where the element is arbitrary."""

from __future__ import annotations

from texpr.mapping.bands import rebuild
from texpr.mapping.reductions.way import Case, Rank, Way, as_seq, serial, stay_apart
from texpr.schedule.tree import Body


def _make(case: Case) -> Body:
    plain, reducing, body = case.plain, case.reducing, case.body
    if case.is_invariant or (plain and stay_apart(plain, reducing, body)):
        return rebuild(plain, rebuild(as_seq(reducing), serial(body)))
    return rebuild(as_seq(reducing), case.below(rebuild(plain, body), case.around.inside_all(reducing)))


WAY = Way(Rank.ORDER, lambda _: True, _make)
