"""`texpr check`: is it legal?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

import click

from texpr.cli.console import Console
from texpr.cli.program import FILE, JSON, SIZE, findings, parse_sizes, read_program, refuse_unknown
from texpr.ir.program import Function
from texpr.support.diagnostic import Diagnostic
from texpr.support.lazy import resolve
from texpr.support.render import as_data

Buildable: TypeAlias = Callable[[Function, Mapping[str, int], Sequence[str]], Iterator[Diagnostic]]


@click.command("check")
@FILE
@SIZE
@click.option(
    "--for", "targets", multiple=True, metavar="TARGET", help="Does `build` take it, too? A target; may be given several times."
)
@JSON
@click.pass_obj
def command(console: Console, file: Path, sizes: tuple[str, ...], targets: tuple[str, ...], json: bool) -> int:
    """Is it legal? Shows every error with a caret; exit code 1 where there is one.

    Every function is checked, and every schedule followed, as far as that does not wait for a size to be fixed. Sizes that
    --size does not fix stay open, and the answer holds for all of them. With --for every function is also lowered for that
    target, by each of its schedules that suits it, and proved as `build` does: what passes, `build` takes.
    """
    with console.working(f"checking {file}"):
        program, rest = read_program(file, parse_sizes(sizes))
        refuse_unknown(rest, program.functions)
        found = tuple(finding for function in program.functions for finding in findings(function, rest))
        if targets and not found:
            buildable = cast("Buildable", resolve("texpr.cli.following:unbuildable"))
            found = tuple(finding for function in program.functions for finding in buildable(function, rest, targets))
    console.diagnostics(found)
    names = [function.name for function in program.functions]
    if not found:
        built = f", and built for {', '.join(targets)}" if targets else ""
        console.say(f"{file}: legal{built} ({', '.join(names) or 'no functions'})")
    console.data({"ok": not found, "functions": names, "diagnostics": [as_data(finding) for finding in found]})
    return 1 if found else 0
