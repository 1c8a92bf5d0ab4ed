"""Common parts of the verbs: their arguments, and the path from a file to a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, cast

import click

from texpr.ir.program import Function, Par, Program, Seq, walk
from texpr.ir.program.selection import AUTO, NONE
from texpr.ordered import check
from texpr.sources import program_of, read_source
from texpr.support.diagnostic import Diagnostic, TexprError
from texpr.support.lazy import resolve
from texpr.toolchain.machine import usable_cores

FILE = click.argument("file", type=click.Path(path_type=Path))
FUNCTION = click.argument("name", metavar="[FN]", required=False)
JSON = click.option("--json", is_flag=True, help="Print one JSON object and nothing else.")
SCHEDULE = click.option(
    "--schedule", default=AUTO, show_default=True, metavar=f"NAME|{AUTO}|{NONE}", help="Which schedule of the file to use."
)
JOBS = click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=usable_cores, show_default="the cores", envvar="TEXPR_JOBS",
    metavar="N", help="How many processes may work at once.",
)  # fmt: skip
ARGUMENTS = click.option(
    "--arg", "arguments", multiple=True, metavar="NAME=…",
    help="An input: FILE.npy, random, zeros or a value. An inout that is not given starts as zeros.",
)  # fmt: skip
SEED = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For random inputs.")
SIZE = click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="Fix a size or const; may be given several times.")

Refusals: TypeAlias = Callable[[Function, Mapping[str, int]], Iterator[Diagnostic]]


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


def read_program(file: Path, sizes: dict[str, int]) -> tuple[Program, dict[str, int]]:
    """The program in `file`, its consts fixed by `sizes`, and the remaining sizes. Raises TexprError."""
    return program_of(read_source(file), sizes)


def legal_function(file: Path, name: str | None, sizes: dict[str, int]) -> tuple[Function, dict[str, int]]:
    """The function `name` (or the only one) of a file, checked, and the sizes that are not consts.

    Raises TexprError for a wrong program, click.UsageError for an unknown function or size.
    """
    program, rest = read_program(file, sizes)
    function = select(program, name)
    known = [sym.name for sym in function.sizes]
    for size in rest:
        if size not in known:
            raise click.UsageError(f"`{function.name}` has no size `{size}`; its sizes are: {', '.join(known) or 'none'}")
    found = tuple(check(at_sizes(function, rest)))
    if found:
        raise TexprError(found)
    return function, rest


def at_sizes(function: Function, sizes: Mapping[str, int]) -> Function:
    """`function` with those of `sizes` fixed that it has: more can be decided than for all sizes."""
    names = {sym.name for sym in function.sizes} & sizes.keys()
    if not names:
        return function
    fix = cast("Callable[[Function, Mapping[str, int]], tuple[Function, object]]", resolve("texpr.driver:fix"))
    return fix(function, {name: sizes[name] for name in names})[0]


def findings(function: Function, sizes: Mapping[str, int]) -> Iterable[Diagnostic]:
    """The errors of a function at `sizes`; if there are none, the refusals of its schedules and pragmas."""
    found = tuple(check(at_sizes(function, sizes)))
    marked = (stmt for stmt in walk(function.body) if isinstance(stmt, Par | Seq) and stmt.directives)
    if found or not (function.schedules or any(marked)):
        return found
    refusals = cast("Refusals", resolve("texpr.cli.following:refusals"))
    return refusals(function, sizes)


def refuse_unknown(sizes: Mapping[str, int], functions: Iterable[Function]) -> None:
    """Raises click.UsageError for a size that none of `functions` has."""
    known = {sym.name for function in functions for sym in function.sizes}
    for size in sizes:
        if size not in known:
            raise click.UsageError(f"there is no size or const `{size}`; the sizes are: {', '.join(sorted(known)) or 'none'}")


def select(program: Program, name: str | None) -> Function:
    """The function `name`, or the only one. Raises click.UsageError."""
    names = [function.name for function in program.functions]
    listed = ", ".join(names) or "none"
    if name is None:
        if len(names) != 1:
            raise click.UsageError(f"name one of the file's functions: {listed}")
        return program.functions[0]
    if name not in names:
        raise click.UsageError(f"there is no function `{name}`; the file has: {listed}")
    return program[name]
