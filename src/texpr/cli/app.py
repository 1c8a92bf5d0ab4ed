"""The verbs, loaded when called, and the exit code of each kind of failure.

Exit codes: 0 success; 1 the program or the data is wrong; 2 the call is wrong; 3 the compiler is wrong; 4 (`verify`)
something is not proved, which its text permits.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import cast

import click

from texpr import __version__
from texpr.cli.console import Console
from texpr.support.diagnostic import Diagnostic, TexprError
from texpr.support.lazy import resolve

VERBS: dict[str, str] = {
    "new": "Make a project to start from.",
    "check": "Is it legal? Diagnostics with carets.",
    "run": "Run a function on arrays.",
    "build": "Write a package that C, C++ and Rust can use.",
    "bench": "Time a function, beside references.",
    "explain": "Show every decision, with its reason.",
    "tune": "Search for the schedule by which a function is fastest.",
    "verify": "Derive and prove an artifact again.",
    "fmt": "Rewrite files in the house format.",
    "lsp": "Serve an editor: the Language Server Protocol over standard input and output.",
    "draw": "Draw a function: its IterDomains.",
    "explore": "Show a program beside its forms, code, proof and pictures, on a page.",
    "completions": "Print what makes a shell complete this command.",
    "doctor": "Show what is installed and what each target can do here.",
}
"""Each verb with its one line of help; `texpr.cli.verbs.VERB` holds `command`."""

WRONG_CALL = frozenset((
    "E0580", "E0707", "E0805", "E0806", "E0807", "E0810", "E0811", "E0813", "E0823", "E0824", "E0825", "E0826", "E0827",
    "E0840", "E0841", "E0842", "E0844", "E0847", "E0850", "E0851", "E0852", "E0855", "E0860", "E0861", "E0862", "E0863",
    "E0864",
))  # fmt: skip
"""Wrong calls: a file, folder, size, target or schedule that cannot be used. All other codes concern the program or the data.
"""


class Verbs(click.Group):
    """A group whose commands are imported when they are called, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order of the documentation."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb `cmd_name`, or None."""
        if cmd_name not in VERBS:
            return None
        return cast(click.Command, resolve(f"texpr.cli.verbs.{cmd_name}:command"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the verbs without loading them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="texpr %(version)s")
def texpr() -> None:
    """An ahead-of-time compiler for GPU tensor programs that proves what it does."""


def exit_code(found: Sequence[Diagnostic]) -> int:
    """The exit code for what was found: 0 for nothing."""
    if not found:
        return 0
    return 2 if all(each.code in WRONG_CALL for each in found) else 1


def run(arguments: Sequence[str]) -> int:
    """Runs the command line `arguments` and gives its exit code; no exception escapes."""
    console = Console(json="--json" in arguments)
    try:
        with texpr.make_context("texpr", list(arguments), obj=console) as context:
            outcome: object = texpr.invoke(context)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as wrong:
        wrong.show()
        return 2
    except BrokenPipeError:
        # The reader of the output has closed it. What is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except TexprError as wrong:
        console.failure(wrong.diagnostics)
        return exit_code(wrong.diagnostics)
    except MemoryError:
        console.failure([Diagnostic("E0859", None, "there is not enough memory for this", help="use smaller sizes")])
        return 1
    except Exception as fault:
        console.bug(fault, traceback.format_exc() if os.environ.get("TEXPR_TRACEBACK") else None)
        return 3
