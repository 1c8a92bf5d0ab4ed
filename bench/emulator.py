"""The emulator's rate on one core: barriers, shared memory and threads a second, detectors off and on, in order and by a seed.

Promised: 20 million thread-barriers a second in order with detectors off. `--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from texpr.backends.cuda.headers import headers
from texpr.emulator import Emulated, build

PROMISED = 20e6
THREADS, BLOCKS = 256, 100


def seconds(run: Callable[[], object], times: int) -> float:
    """The least processor time of a run: what else the machine does is not counted."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def rates(emulated: Emulated, seed: int | None, detect: bool, times: int) -> dict[str, float]:
    """Thread-barriers, accesses to shared memory (each with a barrier) and threads of saxpy, a second."""
    n, steps = THREADS * 512, 2000
    x, z = np.ones(n, np.float32), np.ones(n, np.float32)

    def launch(kernel: str, grid: int, args: list[object]) -> Callable[[], object]:
        return lambda: emulated.launch(kernel, grid, THREADS, args, seed=seed, detect=detect)

    barriers = seconds(launch("barriers_0", 1, [steps]), times)
    tile = seconds(launch("tile_0", BLOCKS, [20, z]), times)
    saxpy = seconds(launch("saxpy_0", n // THREADS, [2.0, x, n, z]), times)
    return {
        "barriers": steps * THREADS / barriers,
        "shared accesses": BLOCKS * THREADS * 42 / tile,
        "saxpy threads": n / saxpy,
    }


def measure(times: int) -> list[dict[str, object]]:
    """One row for each way to run."""
    text = (Path(__file__).parent / "emulator.cu").read_text()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for checked, detect in ((False, False), (True, False), (True, True)):
            emulated = build(text, headers(), Path(folder), checked=checked)
            memory = "plain" if not checked else "detectors on" if detect else "detectors off"
            for schedule, seed in (("in order", None), ("random", 0)):
                rows.append({"memory": memory, "schedule": schedule, **rates(emulated, seed, detect, times)})
    return rows


def main() -> int:
    """Print the table; exit 1 where the promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--times", type=int, default=5, help="runs of each, of which the fastest counts")
    options = parser.parse_args()
    rows = measure(options.times)
    names = [name for name in rows[0] if name not in ("memory", "schedule")]
    sys.stdout.write("the emulator on one core, millions a second\n\n")
    sys.stdout.write(f"{'memory':15}{'schedule':10}" + "".join(f"{name:>17}" for name in names) + "\n")
    for row in rows:
        values = "".join(f"{float(str(row[name])) / 1e6:17.1f}" for name in names)
        sys.stdout.write(f"{row['memory']:15}{row['schedule']:10}{values}\n")
    if options.json:
        today = datetime.now(UTC).date().isoformat()
        told = {"date": today, "machine": platform.machine(), "processor": processor(), "cores": os.cpu_count(), "rows": rows}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    return 0 if float(str(rows[0]["barriers"])) >= PROMISED else 1


def processor() -> str:
    """The processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


if __name__ == "__main__":
    sys.exit(main())
