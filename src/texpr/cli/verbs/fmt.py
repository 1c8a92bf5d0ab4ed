"""`texpr fmt`: files in the house format."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from texpr.cli.app import exit_code
from texpr.cli.console import Console
from texpr.cli.files import rewrite
from texpr.cli.program import JSON
from texpr.editor.formatting import format_text
from texpr.sources import decoded, limited, read_bytes
from texpr.support.diagnostic import Diagnostic, TexprError
from texpr.support.record import Record
from texpr.support.render import as_data

STDIN = "-"


class _Formatted(Record):
    """A file, or standard input, its name, its content, and that in the house format."""

    path: Path | None
    name: str
    before: bytes
    after: bytes


@click.command("fmt")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--check", is_flag=True, help="Write nothing; list the files that would change, and fail if there are any.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@JSON
@click.pass_obj
def command(console: Console, files: tuple[Path, ...], check: bool, diff: bool, json: bool) -> int:
    """Rewrite files in the house format; `-` stands for standard input and output.

    Spaces, indentation, blank lines and lines of more than 132 columns are set right; what stands on a line is your choice, and
    comments stay where they are. A file with an error of syntax is reported and left as it is. What was made is parsed and
    compared with what was there, before anything is written.
    """
    if len(files) > 1 and any(str(file) == STDIN for file in files):
        raise click.UsageError("`-` stands alone: its result goes to standard output")
    done, wrong = _all(files)
    changed = [each for each in done if each.before != each.after]
    if diff:
        for each in changed:
            console.say("\n".join(_difference(each)))
    elif check:
        for each in changed:
            console.say(each.name)
    else:
        for each in changed:
            if each.path is not None:
                rewrite(each.path, each.after)
                console.say(f"{each.name}: formatted")
        _print(console, done)
    failed = exit_code(wrong) or int(check and bool(changed))
    data = {"changed": [each.name for each in changed], "diagnostics": [as_data(finding) for finding in wrong]}
    texts = [("text", each.after.decode()) for each in done if each.path is None]
    console.diagnostics(wrong)
    console.data({"ok": not failed, **data, **dict(texts)})
    return failed


def _all(files: Iterable[Path]) -> tuple[list[_Formatted], list[Diagnostic]]:
    """The files that could be formatted, and what is wrong with the others."""
    done: list[_Formatted] = []
    wrong: list[Diagnostic] = []
    for file in dict.fromkeys(files):
        path = None if str(file) == STDIN else file
        name = "<stdin>" if path is None else str(path)
        try:
            data = limited(name, sys.stdin.buffer) if path is None else read_bytes(path)
            done.append(_Formatted(path, name, data, format_text(decoded(name, data).text, name).encode()))
        except TexprError as raised:
            wrong += raised.diagnostics
    return done, wrong


def _print(console: Console, done: Iterable[_Formatted]) -> None:
    """Prints what standard input becomes, byte by byte."""
    for each in done:
        if each.path is None and not console.json:
            sys.stdout.flush()
            sys.stdout.buffer.write(each.after)
            sys.stdout.buffer.flush()


def _difference(each: _Formatted) -> Iterator[str]:
    """The lines of a unified diff."""
    before, after = (data.decode().split("\n") for data in (each.before, each.after))
    return difflib.unified_diff(before, after, each.name, f"{each.name} (formatted)", lineterm="")
