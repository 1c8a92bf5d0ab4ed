"""Products of few rows and columns, and many terms, on tensor cores: parts of their sums first (`planner.sums.divided`)."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.isa.registry import DEVICES
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest
from texpr.planner.strategies import products, warpgroups
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.planner.sums.divided import divided

LAUNCH = 3.0
"""Microseconds of another launch."""

MICRO = 1e6


def _applies(subject: Subject) -> bool:
    nest = subject.nest
    plain = isinstance(nest, Nest) and len(nest.seqs) == 1 and not nest.masked and not subject.is_part
    return plain and products.STRATEGY.applies(subject)


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    device = DEVICES.get(subject.state.target.name)
    if refused or device is None or not device.bandwidth.dram.value:
        return None
    byte = 2 * 4 / device.bandwidth.dram.value * MICRO
    strategies = [each.STRATEGY for each in (products, warpgroups) if each.STRATEGY.applies(subject)]
    return divided(subject, strategies, byte, LAUNCH)


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose)
"""Where tiles of all results would not fill the machine."""
