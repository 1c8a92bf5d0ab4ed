"""What the proofs of an artifact say, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from texpr.artifact.certificate import Data


def counts(proofs: Mapping[str, Sequence[Data]]) -> dict[str, dict[str, int]]:
    """How many obligations have which verdict, by target; those of a schedule that is believed are left out."""
    found: dict[str, dict[str, int]] = {}
    for target, each in proofs.items():
        total = found.setdefault(target, {})
        for proof in each:
            schedule: dict[str, Any] = proof.get("schedule", {"counts": {}})
            own: dict[str, int] = {} if schedule.get("verdict") == "believed" else schedule["counts"]
            for verdict, number in (*proof["counts"].items(), *own.items()):
                total[verdict] = total.get(verdict, 0) + number
    return found


def believed_schedules(proofs: Mapping[str, Sequence[Data]]) -> list[tuple[str, int]]:
    """The functions, as TARGET/NAME, of which it is not proved that their schedules keep to what was written, and how much of
    that is open."""
    return [
        (f"{target}/{proof['function']}", proof["schedule"]["counts"]["undecided"])
        for target, each in proofs.items()
        for proof in each
        if proof.get("schedule", {}).get("verdict") == "believed"
    ]


def open_plans(proofs: Mapping[str, Sequence[Data]]) -> list[tuple[str, int]]:
    """The functions, as TARGET/NAME, of whose plans something is not proved, which their text lets pass; and how much."""
    return [
        (f"{target}/{proof['function']}", number)
        for target, each in proofs.items()
        for proof in each
        if (number := proof["counts"]["undecided"])
    ]
