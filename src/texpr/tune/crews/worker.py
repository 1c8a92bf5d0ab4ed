"""A process that measures: a line of JSON in, a line of JSON out. `python -m texpr.tune.crews.worker MODULE:FUNCTION`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn, cast

from texpr.support.lazy import resolve

READY = "ready"
"""The first line: all is imported."""


def serve(reference: str) -> int:
    """Answers tasks until there are no more. What is printed meanwhile does not get among the answers."""
    signal.signal(signal.SIGTERM, _end)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        measure = cast("Callable[[str], str]", resolve(reference))
        answers.write(f"{READY}\n")
        answers.flush()
        for line in sys.stdin:
            answers.write(f"{measure(line)}\n")
            answers.flush()
    return 0


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Exits such that tools that were started are stopped."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1]))
