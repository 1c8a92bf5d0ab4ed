"""`tune.json`: what was searched, by what, and what was found."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from typing import Any

from texpr import __version__
from texpr.support.record import Record
from texpr.tune.outcome import FAILED, MEASURED, REFUSED
from texpr.tune.problem import OBJECTIVES, Problem
from texpr.tune.search import Over
from texpr.tune.space import Point, Space


class Found(Record):
    """A point with the value of its objective in seconds, and what else is known of it."""

    point: Point
    value: float
    details: dict[str, Any]


def different(trials: Sequence[Over], space: Space) -> list[Over]:
    """The trials of different points, the first of each."""
    found: dict[tuple[int, ...], Over] = {}
    for each in trials:
        found.setdefault(tuple(each.point[d.name] for d in space.dimensions), each)
    return list(found.values())


def best(trials: Sequence[Over]) -> Found | None:
    """The least value; of equals the first."""
    found = [each for each in trials if each.outcome.value is not None]
    if not found:
        return None
    least = min(found, key=lambda each: each.outcome.value or 0.0)
    return Found(least.point, least.outcome.value or 0.0, dict(least.outcome.details))


def default(trials: Sequence[Over], space: Space) -> Over | None:
    """The trial of the point that the text, or the compiler by itself, has."""
    return next((each for each in trials if dict(each.point) == space.default), None)


def report(problem: Problem, space: Space, name: str, trials: Sequence[Over], schedule: str) -> dict[str, Any]:
    """All of it, as data. `schedule`: the text of the best one."""
    once = different(trials, space)
    least, first = best(once), default(once, space)
    counts = Counter(each.outcome.state for each in once)
    return {
        "texpr": __version__,
        "search": name,
        "function": problem.function,
        "target": problem.target,
        "objective": problem.objective,
        "objective_means": OBJECTIVES["time" if problem.objective == "time" else "bound"],
        "unit": "s",
        "sizes": problem.sizes,
        "machine": {"processor": platform.processor() or platform.machine(), "system": platform.platform()},
        "space": [{"name": d.name, "values": list(d.values), "default": d.default, "labels": list(d.labels)}
                  for d in space.dimensions],
        "points": space.size,
        "measured": counts[MEASURED],
        "refused": counts[REFUSED],
        "failed": counts[FAILED],
        "default": None if first is None else first.outcome.data,
        "best": None if least is None else {"point": dict(least.point), "value": least.value, "details": least.details},
        "schedule": schedule,
        "trials": [{"point": dict(each.point), **each.outcome.data} for each in once],
    }  # fmt: skip
