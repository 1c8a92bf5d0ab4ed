"""`texpr lsp`: the language server, for editors to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import click

from texpr.cli.program import findings
from texpr.driver import lower
from texpr.editor.answers.problems import Examine, Place
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO, select_schedule
from texpr.isa.registry import resolve as target
from texpr.support.diagnostic import TexprError, error
from texpr.support.lazy import missing, resolve

TARGET = "sm_90a"


@click.command("lsp")
def command() -> int:
    """Serve an editor by the Language Server Protocol, over standard input and output.

    Editors start it; see docs/editors.md. It needs the extra `lsp`: pip install 'texpr-compiler[lsp]'.
    """
    with missing(_lacking):
        serve = cast("Callable[[Examine, Place], int]", resolve("texpr.editor.server:serve"))
    return serve(lambda function: findings(function, {}), _placements)


def _lacking(package: str) -> TexprError:
    help = "pip install 'texpr-compiler[lsp]'"
    return error("E0825", None, f"the language server needs `{package}`, which is not installed", help=help)


def _placements(function: Function) -> Iterator[tuple[str, str]]:
    """The placement of each buffer, as `texpr explain` gives it for the target that it takes by itself."""
    made = lower(function, TARGET, schedule=select_schedule(function, AUTO, target(TARGET)))
    return ((each.buffer, f"for {TARGET} in {each.space}: {each.reason}") for notes in made.notes for each in notes.buffers)
