"""The command `texpr`: one file a verb, and the only package that prints."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn, cast

from texpr import __version__
from texpr.support.garbage import settle
from texpr.support.lazy import resolve

ENDED_BY = 128
"""Added to the signal's number for the exit code of a process that a signal ended, as in shells."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with `arguments` (those of the process by default); gives the exit code.

    With `--version` alone, it answers without loading anything. An interrupt or a request to terminate is not a failure, also
    during loading: the tools that it started are stopped, their folders removed, and nothing is printed.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        sys.stdout.write(f"texpr {__version__}\n")
        return 0
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _end)
        if arguments is None:
            settle()
        run = cast("Callable[[list[str]], int]", resolve("texpr.cli.app:run"))
        return run(given)
    except KeyboardInterrupt:
        return ENDED_BY + signal.SIGINT


def process() -> NoReturn:
    """The process `texpr`. It leaves its memory to the system when all is done: to free it object by object takes as long as to
    load the command."""
    code = 1

    def leave() -> None:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:  # nobody reads it any more
            os._exit(code or 1)
        os._exit(code)

    atexit.register(leave)  # the first one to be registered is the last one to run
    try:
        code = main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    sys.exit(code)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Exits as on an interrupt: everything that is open is closed."""
    sys.exit(ENDED_BY + number)
