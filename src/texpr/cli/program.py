"""What several verbs share: their arguments, and the way from a file to a function."""

from __future__ import annotations

from pathlib import Path

import click

from texpr.ir.program import Function, Program

FILE = click.argument("file", type=click.Path(path_type=Path))
JSON = click.option("--json", is_flag=True, help="Print one JSON object and nothing else.")
SIZE = click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="Fix a size or const; may be given several times.")


def parse_sizes(given: tuple[str, ...]) -> dict[str, int]:
    """The values of `--size NAME=N`. Raises click.UsageError."""
    sizes: dict[str, int] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            number = int(value.replace("_", ""))
        except ValueError:
            raise click.UsageError(f"--size takes NAME=INTEGER, not `{text}`") from None
        if sizes.setdefault(name.strip(), number) != number:
            raise click.UsageError(f"size `{name}` is given twice")
    return sizes


def select(program: Program, name: str | None) -> Function:
    """The function `name`, or the only one. Raises click.UsageError."""
    names = [function.name for function in program.functions]
    listed = ", ".join(names) or "none"
    if name is None:
        if len(names) != 1:
            raise click.UsageError(
                f"the file has several functions; name one of: {listed}" if names else "the file has no function"
            )
        return program.functions[0]
    if name not in names:
        raise click.UsageError(f"there is no function `{name}`; the file has: {listed}")
    return program[name]


def check_sizes(function: Function, sizes: dict[str, int]) -> None:
    """Every name in `sizes` is a size or const of `function`. Raises click.UsageError."""
    known = [sym.name for sym in function.sizes] + [sym.name for sym, _ in function.consts]
    for name in sizes:
        if name not in known:
            raise click.UsageError(f"`{function.name}` has no size `{name}`; its sizes are: {', '.join(known) or 'none'}")
