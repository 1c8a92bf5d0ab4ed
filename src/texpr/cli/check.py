"""`texpr check`: is it legal?"""

from __future__ import annotations

from pathlib import Path

import click

from texpr import driver
from texpr.cli.console import Console
from texpr.cli.files import read_source
from texpr.cli.program import FILE, JSON
from texpr.cli.render import as_data


@click.command("check")
@FILE
@JSON
@click.pass_obj
def command(console: Console, file: Path, json: bool) -> int:
    """Is it legal? Shows every error with a caret; exit code 1 where there is one."""
    with console.working(f"checking {file}"):
        program = driver.parse(read_source(file))
        found = driver.check(program)
    console.diagnostics(found)
    names = [function.name for function in program.functions]
    if not found:
        console.say(f"{file}: legal ({', '.join(names)})")
    console.data({"ok": not found, "functions": names, "diagnostics": [as_data(diagnostic) for diagnostic in found]})
    return 1 if found else 0
