"""The command `texpr`: one file a verb, and the only room that prints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import cast

from texpr import __version__
from texpr.support.lazy import resolve


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (those of the process by default); the exit code.

    Asked for its version alone, it answers without loading anything.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        sys.stdout.write(f"texpr {__version__}\n")
        return 0
    run = cast("Callable[[list[str]], int]", resolve("texpr.cli.app:run"))
    return run(given)
