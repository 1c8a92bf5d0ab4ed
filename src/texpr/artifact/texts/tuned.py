"""tune.json: what a search found (`texpr tune`), beside what was built by its schedule. Nothing in the artifact proves it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, cast

from texpr.artifact.record import load_json

KEYS = ("search", "function", "target", "objective", "best", "trials")
"""What the report of each search has."""


def print_tuned(data: bytes, functions: Collection[str]) -> str:
    """The report as an artifact has it. Raises ValueError: it is none, or of a function that is not in the artifact."""
    read = load_json(data)
    report = cast("Mapping[str, Any]", read) if isinstance(read, dict) else dict[str, Any]()
    if missing := [key for key in KEYS if key not in report]:
        raise ValueError(f"it is no report of `texpr tune`: it has no `{missing[0]}`")
    if report["function"] not in functions:
        raise ValueError(f"it is about another function: {str(report['function'])[:60]!r}")
    return json.dumps(read, indent=1, ensure_ascii=False) + "\n"
