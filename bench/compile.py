"""How long a program of the gallery takes from its text to its `.cu`, and `texpr check` from the start of the process.

Promised: a `.cu` within 0.5 s; `texpr check` within 0.4 s. `--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from common.measure import Row, seconds, show
from texpr import driver

EXAMPLES = Path(__file__).parents[1] / "examples"
LONGEST, LONGEST_START = 0.5, 0.4
# What a build of these has to fix.
SIZES: dict[str, dict[str, int]] = {"conv2d": {"stride": 2, "dilation": 1, "padding": 1}}


def measure() -> list[Row]:
    """One row a program: milliseconds to parse, to check and to make the `.cu`, checks included, and all of it."""
    rows: list[Row] = []
    for path in sorted(EXAMPLES.glob("*.te")):
        sizes = SIZES.get(path.stem, {})
        program = driver.load(path, sizes)
        function = program.functions[0]

        def whole(path: Path = path, sizes: dict[str, int] = sizes) -> None:
            driver.lower(driver.load(path, sizes).functions[0], "sm_90a")

        rows.append(
            {
                "program": path.stem,
                "parse ms": 1e3 * seconds(lambda path=path, sizes=sizes: driver.load(path, sizes)),
                "check ms": 1e3 * seconds(lambda program=program: driver.check(program)),
                "check and lower ms": 1e3 * seconds(lambda function=function: driver.lower(function, "sm_90a")),
                "text to .cu ms": 1e3 * seconds(whole),
            }
        )
    return rows


def start_up() -> float:
    """Seconds of `texpr check` on a small program, as a whole process."""
    command = [sys.executable, "-m", "texpr", "check", str(EXAMPLES / "saxpy.te")]
    return seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def main() -> int:
    """Print the table; exit 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    rows = measure()
    start = start_up()
    rows.append(
        {"program": "(texpr check, as a process)", **dict.fromkeys(list(rows[0])[1:-1], ""), "text to .cu ms": 1e3 * start}
    )
    show("from text to .cu", rows, options.json)
    slow = [row for row in rows[:-1] if float(row["text to .cu ms"]) > 1e3 * LONGEST]
    return 1 if slow or start > LONGEST_START else 0


if __name__ == "__main__":
    sys.exit(main())
