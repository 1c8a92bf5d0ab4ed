"""Every strategy, in the order in which they are tried."""

from __future__ import annotations

from texpr.isa.gather import gather
from texpr.planner import strategies
from texpr.planner.strategy import Strategy

STRATEGIES: tuple[Strategy, ...] = tuple(
    sorted(gather(strategies.__name__, strategies.__path__, "STRATEGY", Strategy), key=lambda each: each.rank)
)
"""By rank; those of equal rank, which compete by cost, by the names of their files."""
