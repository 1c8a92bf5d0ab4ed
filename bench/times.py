"""Times of real problems on a device: as the compiler schedules them, beside the model's bound and beside PyTorch.

`ours µs`: the median of launches replayed from a graph, with an emptied cache; `of bound`: that over the bound of the plan,
less than 1 where the model is wrong; `of least`: over what any program needs; `torch µs` and `ratio`: PyTorch, as it is, over
ours. Results are compared with PyTorch's before anything is timed: `agrees` has how far they are apart, as a part of the
largest one.

Each problem is compiled and loaded in a process of its own, several at once; one at a time uses the device. Without a GPU:
status 4, and nothing is measured. Exit 1 where a problem fails, or its results differ.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from common.apart import apart
from common.device import NOTHING, find
from common.measure import Row, keep, show
from common.on_card import LOCK, measure
from common.timed import Case, cases
from texpr import __version__

RESULTS = Path(__file__).parent / "results" / "times.json"
LONGEST = 150
"""Seconds for one problem."""


def row(case: Case, found: Mapping[str, Any]) -> Row:
    """A line of the table."""
    ours, bound, least, torch = (found.get(name) for name in ("ours_us", "bound_us", "least_us", "torch_us"))
    agrees = found.get("agrees", found.get("failed", ""))
    return {
        "problem": case.name,
        "ours µs": ours or "",
        "bound µs": bound or "",
        "of bound": ours / bound if ours and bound else "",
        "by": found.get("by", ""),
        "of least": ours / least if ours and least else "",
        "torch µs": torch or "",
        "ratio": torch / ours if ours and torch else "",
        "agrees": agrees[:70] if isinstance(agrees, str) else agrees,
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="problems or classes; all, unless some are named")
    parser.add_argument("--json", type=Path, nargs="?", const=RESULTS, help="keep the numbers here, of other problems, too")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes at a time")
    parser.add_argument("--of", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    known = cases()
    if asked.of is not None:
        sys.stdout.write(json.dumps(measure(next(each for each in known if each.name == asked.of))) + "\n")
        return 0
    device = find(emulate=False)
    if isinstance(device, str):
        sys.stdout.write(f"times of problems: no GPU: nothing measured ({device})\n")
        return NOTHING
    chosen = [each for each in known if not asked.names or each.name in asked.names or each.kind in asked.names]
    found: dict[str, Mapping[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.jobs) as pool:
        lock = Path(folder) / "device"
        made = pool.map(lambda name: apart(__file__, name, LONGEST, {LOCK: str(lock)}), [case.name for case in chosen])
        for case, one in zip(chosen, made, strict=True):
            found[case.name] = {"class": case.kind, "sizes": dict(case.sizes), **one}
            if asked.json is not None:
                keep(asked.json, {"texpr": __version__, "device": device.name, "target": device.target}, found)
    show(f"times of problems, {device.name}, texpr {__version__}", [row(case, found[case.name]) for case in chosen], None)
    return 1 if any("failed" in each for each in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
