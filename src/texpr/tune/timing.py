"""The time of a call: the least of several, as what disturbs a measurement only adds to it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from texpr.support.record import Record

LEAST_CALLS, LEAST_SECONDS, MOST_CALLS = 5, 0.3, 1000
"""So many calls, for so long, but no more."""


class Timing(Record):
    """Seconds of a call: the median, and the least; of so many calls."""

    median: float
    least: float
    calls: int


def timed(call: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> Timing:
    """The time of `call`, each after `prepare`, which is not counted; a first one is not counted, either."""
    prepare()
    call()
    found: list[float] = []
    while len(found) < LEAST_CALLS or (sum(found) < LEAST_SECONDS and len(found) < MOST_CALLS):
        prepare()
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return Timing(statistics.median(found), min(found), len(found))
