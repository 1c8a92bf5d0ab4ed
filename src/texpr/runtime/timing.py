"""Times of calls, taken in turn, so that what slows a machine for a while slows all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from texpr.support.record import Record

Action: TypeAlias = Callable[[], object]
Clock: TypeAlias = Callable[[], float]
"""Seconds since some time, never less than before."""

Watch: TypeAlias = Callable[[Action], float]
"""The seconds that a call takes."""

FEWEST, MOST = 5, 10_000
"""Rounds, and runs of each call, whatever the time that is given."""

WARM = 0.1
"""The share of the given time for runs that do not count: threads start, clocks rise, pages are touched."""


def nothing() -> None:
    """Does nothing."""


class Timed(Record):
    """A call, what takes its time, and what is done without being timed: before each run, and when its turn begins."""

    call: Action
    watch: Watch
    before: Action = nothing
    rest: Action = nothing


class Spread(Record):
    """The median and the quartiles of times, in seconds, and how many there are."""

    median: float
    low: float
    high: float
    runs: int


def by_clock(clock: Clock = time.perf_counter) -> Watch:
    """By a clock of the host: of calls that return when all is done."""

    def watch(call: Action) -> float:
        start = clock()
        call()
        return clock() - start

    return watch


def in_turn(calls: Mapping[str, Timed], more: Callable[[int], bool], runs: int = 1) -> dict[str, list[float]]:
    """The times of each call, so many `runs` a round, forwards and backwards, as long as there is to be one `more` round after
    so many."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    rounds = 0
    while more(rounds):
        for name, each in list(calls.items())[:: 1 if rounds % 2 == 0 else -1]:
            each.rest()
            for _ in range(runs):
                each.before()
                found[name].append(each.watch(each.call))
        rounds += 1
    return found


def within(seconds: float, clock: Clock = time.perf_counter, fewest: int = FEWEST, most: int = MOST) -> Callable[[int], bool]:
    """Whether another round is to follow: until the time is over, but at least `fewest`, and at most `most`."""
    end = clock() + seconds
    return lambda rounds: rounds < fewest or (rounds < most and clock() < end)


def measured(
    calls: Mapping[str, Timed], seconds: float, clock: Clock = time.perf_counter, runs: int = 1
) -> dict[str, list[float]]:
    """The times of each call, after runs that do not count; of `seconds` for each call, the rest is for those that count."""
    whole = seconds * len(calls)
    in_turn(calls, within(WARM * whole, clock, fewest=1), runs)
    return in_turn(calls, within((1 - WARM) * whole, clock, most=MOST // runs), runs)


def spread(times: Sequence[float]) -> Spread:
    """Of at least one time."""
    if len(times) == 1:
        return Spread(times[0], times[0], times[0], 1)
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    return Spread(median, low, high, len(times))


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the ratios round by round; infinite where a time is too short for the clock."""
    return statistics.median(a / b if b else float("inf") for a, b in zip(over, under, strict=True))
