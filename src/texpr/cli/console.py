"""Output to the terminal, in one place.

Results go to standard output, messages about the work to standard error; with `--json` one object goes to standard output and
nothing else. Colour and progress appear on terminals only.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, cast

from texpr import __version__
from texpr.support.diagnostic import Diagnostic
from texpr.support.faults import told_of
from texpr.support.lazy import resolve
from texpr.support.render import Paint, as_data, plain, render, visible

if TYPE_CHECKING:
    from rich.style import Style

_STYLES = {
    "error": "bold red",
    "limitation": "bold yellow",
    "note": "bold blue",
    "help": "bold green",
    "gutter": "blue",
    "strong": "bold",
}

_CLEAR = "\r\x1b[K"
"""Empties the line of a terminal."""


class Console:
    """The output of one run of the command."""

    def __init__(self, json: bool = False):
        self.json = json

    def say(self, text: str) -> None:
        """Prints a line of result to standard output; silent with `--json`."""
        if not self.json:
            sys.stdout.write(visible(text) + "\n")

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Prints columns of text to standard output; silent with `--json`."""
        lines = [tuple(head), *(tuple(row) for row in rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        for line in lines:
            self.say("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())

    def data(self, value: object) -> None:
        """Prints the one object of `--json`; silent without it."""
        if self.json:
            sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def diagnostics(self, found: Iterable[Diagnostic]) -> None:
        """Prints each diagnostic with its caret to standard error; silent with `--json`."""
        if not self.json:
            paint = _paint(sys.stderr)
            sys.stderr.write("\n".join(render(diagnostic, paint) for diagnostic in found))

    def failure(self, found: Sequence[Diagnostic]) -> None:
        """Prints a failure: the diagnostics, or the object that holds them."""
        self.diagnostics(found)
        self.data({"ok": False, "diagnostics": [as_data(diagnostic) for diagnostic in found]})

    def bug(self, fault: Exception, trace: str | None) -> None:
        """Prints a fault of the compiler: what happened and how to report it."""
        what, where = told_of(fault)
        sys.stderr.write(
            f"internal error: {visible(what)}\n"
            f"  in {where} (texpr {__version__}, Python {sys.version.split()[0]})\n"
            "This is a fault of texpr, not of your program. Please report it, as CONTRIBUTING.md says: the program, the\n"
            "command, and what `texpr doctor --report` prints. With TEXPR_TRACEBACK=1 in the environment the traceback is\n"
            "shown too.\n"
        )
        if trace:
            sys.stderr.write(trace)
        self.data({"ok": False, "internal_error": {"message": what, "where": where}})

    @contextmanager
    def working(self, text: str) -> Generator[Callable[[str], None]]:
        """Shows the current step, and its progress by the given function, while standard error is a capable terminal.

        It uses no thread, as the work may fork this process.
        """
        if self.json or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield lambda done: None
            return

        def tell(done: str) -> None:
            line = visible(f"{text}: {done}" if done else text)
            sys.stderr.write(f"{_CLEAR}{line[: shutil.get_terminal_size().columns - 1]}")
            sys.stderr.flush()

        tell("")
        try:
            yield tell
        finally:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def _paint(stream: TextIO) -> Paint:
    if not stream.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return plain
    style = cast("type[Style]", resolve("rich.style:Style"))
    parsed = {name: style.parse(text) for name, text in _STYLES.items()}
    return lambda text, style: parsed[style].render(text)
