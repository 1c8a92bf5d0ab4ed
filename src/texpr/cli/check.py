"""`texpr check`: is it legal?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import click

from texpr.checks import check
from texpr.cli.console import Console
from texpr.cli.program import FILE, JSON, SIZE, parse_sizes, read_program
from texpr.cli.render import as_data
from texpr.ir.program import Function, Par, Seq, walk
from texpr.support.diagnostic import Diagnostic
from texpr.support.lazy import resolve


@click.command("check")
@FILE
@SIZE
@JSON
@click.pass_obj
def command(console: Console, file: Path, sizes: tuple[str, ...], json: bool) -> int:
    """Is it legal? Shows every error with a caret; exit code 1 where there is one.

    Every function is checked, and every schedule followed, as far as that does not wait for a size to be fixed. A const without
    a default may be given by --size; other sizes stay open, and the answer holds for all of them.
    """
    with console.working(f"checking {file}"):
        program, rest = read_program(file, parse_sizes(sizes))
        found = tuple(finding for function in program.functions for finding in _findings(function))
    if rest:
        raise click.UsageError(f"no function of the file has a const `{next(iter(rest))}`")
    console.diagnostics(found)
    names = [function.name for function in program.functions]
    if not found:
        console.say(f"{file}: legal ({', '.join(names) or 'no functions'})")
    console.data({"ok": not found, "functions": names, "diagnostics": [as_data(finding) for finding in found]})
    return 1 if found else 0


def _findings(function: Function) -> Iterable[Diagnostic]:
    """What is wrong with a function; where nothing is, what its schedules and pragmas are refused for."""
    found = tuple(check(function))
    marked = (stmt for stmt in walk(function.body) if isinstance(stmt, Par | Seq) and stmt.directives)
    if found or not (function.schedules or any(marked)):
        return found
    refusals = cast("Callable[[Function], Iterator[Diagnostic]]", resolve("texpr.cli.following:refusals"))
    return refusals(function)
