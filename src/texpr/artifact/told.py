"""What `proof.json` of an artifact says, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from texpr.artifact.certificate import PROOF


def counts(directory: Path) -> dict[str, dict[str, int]]:
    """How many obligations have which verdict, by target; none for an artifact without a proof. Those of a schedule that is
    believed are left out."""
    found: dict[str, dict[str, int]] = {}
    for target, proof in _proofs(directory):
        total = found.setdefault(target, {})
        schedule: dict[str, Any] = proof.get("schedule", {"counts": {}})
        own: dict[str, int] = {} if schedule.get("verdict") == "believed" else schedule["counts"]
        for verdict, number in (*proof["counts"].items(), *own.items()):
            total[verdict] = total.get(verdict, 0) + number
    return found


def believed_schedules(directory: Path) -> list[tuple[str, int]]:
    """The functions, as TARGET/NAME, of which it is not proved that their schedules keep to what was written, and how much of
    that is open."""
    proofs = ((target, proof, proof.get("schedule", {})) for target, proof in _proofs(directory))
    return [
        (f"{target}/{proof['function']}", schedule["counts"]["undecided"])
        for target, proof, schedule in proofs
        if schedule.get("verdict") == "believed"
    ]


def _proofs(directory: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    file = directory / PROOF
    if file.exists():
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        yield from ((target, proof) for target, proofs in data["targets"].items() for proof in proofs)
