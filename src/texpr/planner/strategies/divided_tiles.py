"""Tiles of few results, each of many terms: parts of their sums first (`planner.sums.divided`)."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.planner.follow import Refused
from texpr.planner.nest import Nest
from texpr.planner.strategies import tiles
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.planner.sums.divided import divided

LAUNCH = 9e6
"""The bytes that a device moves in the time of another launch."""


def _applies(subject: Subject) -> bool:
    nest = subject.nest
    plain = isinstance(nest, Nest) and len(nest.seqs) == 1 and not nest.masked and not subject.is_part
    return plain and tiles.STRATEGY.applies(subject)


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    assert isinstance(subject.nest, Nest), "as it applies"
    if refused or not subject.state.target.has_warps:
        return None
    points = subject.nest.points
    return divided(subject, (tiles.STRATEGY,), 2 * 4 / points, LAUNCH / points)


STRATEGY = Strategy(Rank.TILE, _applies, _propose)
"""Where tiles of all results would not fill the machine."""
