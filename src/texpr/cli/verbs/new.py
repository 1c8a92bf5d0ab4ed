"""`texpr new`: a project to start from."""

from __future__ import annotations

from pathlib import Path

import click

from texpr.cli.console import Console
from texpr.cli.program import JSON
from texpr.cli.starter import project, write


@click.command("new")
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@JSON
@click.pass_obj
def command(console: Console, folder: Path, json: bool) -> int:
    """Make a project in a new folder: a program, and what calls it from Python, C++ and Rust.

    The folder must not exist, or be empty; it is made whole or not at all.
    """
    files = project(folder.name)
    write(folder, files)
    for path in files:
        console.say(str(folder / path))
    console.say(f"\n{folder / 'README.md'} says how to go on")
    console.data({"ok": True, "directory": str(folder), "files": list(files)})
    return 0
