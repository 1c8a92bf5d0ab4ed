"""Summaries of the proofs of an artifact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from texpr.artifact.certificate import Data


def every(proofs: Sequence[Data]) -> Iterator[Data]:
    """The proofs, and those of wide plans."""
    for proof in proofs:
        yield proof
        if "wide" in proof:
            yield proof["wide"]


def counts(proofs: Mapping[str, Sequence[Data]]) -> dict[str, dict[str, int]]:
    """The number of obligations by verdict, by target, without those of a schedule that is believed."""
    found: dict[str, dict[str, int]] = {}
    for target, each in proofs.items():
        total = found.setdefault(target, {})
        for proof in every(each):
            schedule: dict[str, Any] = proof.get("schedule", {"counts": {}})
            own: dict[str, int] = {} if schedule.get("verdict") == "believed" else schedule["counts"]
            for verdict, number in (*proof["counts"].items(), *own.items()):
                total[verdict] = total.get(verdict, 0) + number
    return found


def believed_schedules(proofs: Mapping[str, Sequence[Data]]) -> list[tuple[str, int]]:
    """The functions, as TARGET/NAME, whose schedule is not proved to preserve the program, and the number of open
    obligations."""
    return [
        (f"{target}/{proof['function']}", proof["schedule"]["counts"]["undecided"])
        for target, each in proofs.items()
        for proof in every(each)
        if proof.get("schedule", {}).get("verdict") == "believed"
    ]


def open_plans(proofs: Mapping[str, Sequence[Data]]) -> list[tuple[str, int]]:
    """The functions, as TARGET/NAME, with unproved obligations of their plans, which their text permits; and the number."""
    return [
        (f"{target}/{proof['function']}", number)
        for target, each in proofs.items()
        for proof in every(each)
        if (number := proof["counts"]["undecided"])
    ]
