"""How long a program of the gallery takes from its text to its `.cu`, and `texpr check` from the start of the process.

Promised: a `.cu` within 0.5 s; `texpr check` within 0.4 s. Processor time, as the compiler runs on one core and the machine may
have other work. `--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time

from common.measure import Row, seconds, show
from texpr import driver

EXAMPLES = Path(__file__).parents[1] / "examples"
LONGEST, LONGEST_START = 0.5, 0.4
# What a build of these has to fix.
SIZES: dict[str, dict[str, int]] = {"conv2d": {"stride": 2, "dilation": 1, "padding": 1}}


def measure() -> list[Row]:
    """One row a program: milliseconds to parse, to check, to check and lower, and from the text to the `.cu`."""
    rows: list[Row] = []
    for path in sorted(EXAMPLES.glob("*.te")):
        sizes = SIZES.get(path.stem, {})
        program = driver.load(path, sizes)
        steps: dict[str, Callable[[], object]] = {
            "parse": partial(driver.load, path, sizes),
            "check": partial(driver.check, program),
            "check and lower": partial(driver.lower, program.functions[0], "sm_90a", schedule="auto"),
            "text to .cu": partial(_whole, path, sizes),
        }
        times = {f"{name} ms": 1e3 * seconds(step, process_time) for name, step in steps.items()}
        rows.append({"program": path.stem, **times})
    return rows


def _whole(path: Path, sizes: dict[str, int]) -> None:
    driver.lower(driver.load(path, sizes).functions[0], "sm_90a", schedule="auto")


def start_up() -> float:
    """Seconds of `texpr check` on a small program, as a whole process."""
    command = [sys.executable, "-m", "texpr", "check", str(EXAMPLES / "saxpy.te")]

    def run() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return seconds(run, _of_children)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the table; exit 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    rows = measure()
    start = start_up()
    blank: dict[str, str | float] = dict.fromkeys(list(rows[0])[1:-1], "")
    rows.append({"program": "(texpr check, as a process)", **blank, "text to .cu ms": 1e3 * start})
    show("from text to .cu", rows, options.json)
    slow = [row for row in rows[:-1] if float(row["text to .cu ms"]) > 1e3 * LONGEST]
    return 1 if slow or start > LONGEST_START else 0


if __name__ == "__main__":
    sys.exit(main())
