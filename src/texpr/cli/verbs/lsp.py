"""`texpr lsp`: the language server, for editors to start."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

import click

from texpr.cli.program import findings
from texpr.driver import lower
from texpr.editor.answers.problems import Examine
from texpr.frontend import parse
from texpr.ir.program.selection import AUTO, select_schedule
from texpr.isa.registry import resolve as target
from texpr.support.diagnostic import TexprError, error
from texpr.support.lazy import missing, resolve

TARGET = "sm_90a"


@click.command("lsp")
@click.option("--placements", is_flag=True, hidden=True, help="Print where the buffers of the program on standard input are.")
def command(placements: bool) -> int:
    """Serve an editor by the Language Server Protocol, over standard input and output.

    Editors start it; see docs/editors.md. It needs the extra `lsp`: pip install 'texpr-compiler[lsp]'.
    """
    if placements:
        click.echo(json.dumps(_placements(sys.stdin.buffer.read().decode())))
        return 0
    with missing(_lacking):
        serve = cast("Callable[[Examine, Sequence[str]], int]", resolve("texpr.editor.server:serve"))
    return serve(lambda function: findings(function, {}), (sys.executable, "-m", "texpr", "lsp", "--placements"))


def _lacking(package: str) -> TexprError:
    help = "pip install 'texpr-compiler[lsp]'"
    return error("E0825", None, f"the language server needs `{package}`, which is not installed", help=help)


def _placements(text: str) -> dict[str, list[tuple[str, str, str]]]:
    """Where the buffers of each function are and why, as `texpr explain` says for the target that it takes by itself."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for function in parse(text, "page.te").functions:
        with suppress(TexprError):  # it has no plan for that target, which `texpr explain` tells
            made = lower(function, TARGET, schedule=select_schedule(function, AUTO, target(TARGET)))
            found[function.name] = [
                (each.buffer, str(each.space), f"for {TARGET} in {each.space}: {each.reason}")
                for notes in made.notes for each in notes.buffers
            ]  # fmt: skip
    return found
