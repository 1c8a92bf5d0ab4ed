"""What `explain` says of the turn of a loop: how long it takes by the model, and what a search finds of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from texpr.model.modulo.order import is_own, ordered
from texpr.model.modulo.search import LIMIT, Found, bounds, solve
from texpr.model.modulo.turn import Turn


@lru_cache(maxsize=1 << 8)
def searched(turn: Turn) -> Found | None:
    """The best schedule of a turn, if there is one within the limit of the search."""
    return solve(turn, LIMIT)


def told(turn: Turn, numbers: Sequence[int], clocks: float, slots: int) -> Mapping[str, Any] | None:
    """All clocks are of a turn of one of so many `teams`. `clocks`: that it takes by the waits of its plan; `interval`: of the
    best schedule; `units`, `unit`: what the busiest unit needs, `circles`: what waits for each other, in a circle, does.
    `bound_reached`: whether the best schedule needs no more. `searched`, `limit`: parts of the search, and the most of them.
    `order`: operations in the order of the best schedule, of how many turns before; `slots`: of what is copied. None where
    nothing can be said."""
    low, found = bounds(turn), searched(turn)
    if low is None:
        return None
    data: dict[str, Any] = {
        "teams": turn.teams,
        "clocks": clocks,
        "units": float(low.resource),
        "unit": low.unit,
        "circles": float(low.recurrence),
        "limit": LIMIT,
        "slots": slots,
    }
    if found is None:
        return {**data, "interval": None, "bound_reached": False, "searched": LIMIT, "order": []}
    code = ordered(turn, found, numbers)
    order = [
        {"writes": each.name, "product": not is_own(each), "late": at.late}
        for at in code
        for each in (turn.operations[at.operation],)
    ]
    known = {"interval": float(found.interval), "bound_reached": found.is_bound, "searched": found.parts}
    return {**data, **known, "order": order}
