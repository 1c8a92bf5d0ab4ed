"""What became of a trial, and the task that it comes from: plain data, which workers take and give as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from texpr import __version__
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record, as_dict, field
from texpr.tune.problem import Problem
from texpr.tune.space import Point

MEASURED, REFUSED, FAILED, INTERRUPTED = "measured", "refused", "failed", "interrupted"
"""`value` is known; the candidate is wrong, undecided or cannot be built; a worker died, took too long or has another release;
the search was stopped meanwhile, and the trial is made again."""


class Outcome(Record):
    """`value`: of the objective, in seconds. `code`, `reason`: of what was not measured. `details`: of what was."""

    state: str
    value: float | None = None
    code: str = ""
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return as_dict(self)

    @staticmethod
    def of(text: str) -> Outcome:
        """The outcome that a worker sent. Raises ValueError for anything else."""
        data: object = json.loads(text)
        if not isinstance(data, dict) or not {"state"} <= data.keys() <= {"state", "value", "code", "reason", "details"}:
            raise ValueError("a worker's answer is no outcome")
        return Outcome(**cast("dict[str, Any]", data))


def refused(reason: TexprError) -> Outcome:
    """The outcome of a candidate that is refused."""
    first = reason.diagnostics[0]
    return Outcome(REFUSED, code=first.code, reason=first.message)


def failed(reason: str) -> Outcome:
    """The outcome of a trial that came to no end."""
    return Outcome(FAILED, reason=reason)


def task(problem: Problem, point: Point) -> str:
    """A point to be measured, as a line of text."""
    return json.dumps({"version": __version__, "problem": problem.data, "point": dict(point)})


def read_task(text: str) -> tuple[str, Problem, dict[str, int]]:
    """The compiler's release of whoever wrote a task, the problem, and the point."""
    data: dict[str, Any] = json.loads(text)
    return data["version"], Problem(**data["problem"]), data["point"]
