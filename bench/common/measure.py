"""Timing of a call, and a table of results on the screen and as JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from texpr.runtime.timing import Timed, by_clock, in_turn, ratio
from texpr.toolchain.hardware import processor

__all__ = ["Row", "interleaved", "keep", "processor", "ratio", "seconds", "show", "told"]

Row = Mapping[str, str | float | int]


def seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter, *, times: int = 7) -> float:
    """The median time of `call` by `clock` over `times` runs, after one run that does not count."""
    call()
    found: list[float] = []
    for _ in range(times):
        start = clock()
        call()
        found.append(clock() - start)
    return statistics.median(found)


def interleaved(calls: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, list[float]]:
    """The times of each call, the calls taken in turn, forwards and backwards, after one run of each that does not count."""
    timed = {name: Timed(call, by_clock()) for name, call in calls.items()}
    in_turn(timed, lambda done: done < 1)
    return in_turn(timed, lambda done: done < rounds)


def told(rows: Sequence[Row]) -> dict[str, object]:
    """The rows with the date and the machine."""
    today = datetime.now(UTC).date().isoformat()
    return {"date": today, "machine": platform.machine(), "processor": processor(), "cores": os.cpu_count(), "rows": list(rows)}


def show(title: str, rows: Sequence[Row], out: Path | None) -> None:
    """Print the rows as a table, and write them to `out` where it is given."""
    sys.stdout.write(f"{title}\n\n")
    names = list(rows[0])
    cells = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(names))]
    for line in cells:
        padded = [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        sys.stdout.write("  ".join(padded) + "\n")
    sys.stdout.write("\n")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(told(rows), indent=1) + "\n", encoding="utf-8")


def keep(out: Path, said: Mapping[str, object], problems: Mapping[str, Mapping[str, object]]) -> None:
    """Write to `out` what was found of problems, with the date and the machine; what it has of other problems stays."""
    known = json.loads(out.read_text(encoding="utf-8"))["problems"] if out.exists() else {}
    found = {key: value for key, value in told(()).items() if key != "rows"}
    out.parent.mkdir(parents=True, exist_ok=True)
    known |= {name: {"date": found["date"], **each} for name, each in problems.items()}
    text = json.dumps({**found, **said, "problems": known}, indent=1, ensure_ascii=False)
    out.write_text(text + "\n", encoding="utf-8")


def _cell(value: str | float | int) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
