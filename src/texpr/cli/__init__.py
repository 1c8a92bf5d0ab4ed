"""The command `texpr`: one file a verb, and the only room that prints."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn, cast

from texpr import __version__
from texpr.support.lazy import resolve

ENDED_BY = 128
"""A process that a signal ended has this and the signal's number as its exit code, as shells report it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (those of the process by default); the exit code.

    Asked for its version alone, it answers without loading anything. Being interrupted or asked to end is no fault, also while
    it loads: then the tools that it started are stopped and their folders removed, and it says nothing.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        sys.stdout.write(f"texpr {__version__}\n")
        return 0
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _end)
        run = cast("Callable[[list[str]], int]", resolve("texpr.cli.app:run"))
        if arguments is None:
            settle()
        return run(given)
    except KeyboardInterrupt:
        return ENDED_BY + signal.SIGINT


def settle() -> None:
    """For a process that only compiles: what is loaded stays, and little of what a compile makes is a cycle, so that searching
    for garbage as often as Python does takes a sixth of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Leave as an interrupt does: everything that is open is closed on the way out."""
    sys.exit(ENDED_BY + number)
