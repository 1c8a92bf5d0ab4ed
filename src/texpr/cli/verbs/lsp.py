"""`texpr lsp`: the language server, for editors to start."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import click

from texpr.cli.program import findings
from texpr.editor.answers.problems import Examine
from texpr.support.diagnostic import error
from texpr.support.lazy import resolve


@click.command("lsp")
def command() -> int:
    """Serve an editor by the Language Server Protocol, over standard input and output.

    Editors start it; see docs/editors.md. It needs the extra `lsp`: pip install 'texpr-compiler[lsp]'.
    """
    try:
        serve = cast("Callable[[Examine], int]", resolve("texpr.editor.server:serve"))
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("texpr"):
            raise
        help = "pip install 'texpr-compiler[lsp]'"
        raise error("E0825", None, f"the language server needs `{missing.name}`, which is not installed", help=help) from None
    return serve(lambda function: findings(function, {}))
