"""`texpr build`: a package for C, C++ and Rust."""

from __future__ import annotations

from pathlib import Path

import click

from texpr.artifact import Artifact, believed_schedules
from texpr.backends.c.names import identifier
from texpr.cli.console import Console
from texpr.cli.program import FILE, JOBS, JSON, SCHEDULE, SIZE, at_sizes, parse_sizes, read_program, refuse_unknown, select
from texpr.cli.verbs.verify import tell_believed
from texpr.delivery import build
from texpr.ir.program import Function
from texpr.ordered import check
from texpr.support.diagnostic import TexprError


@click.command("build")
@FILE
@click.argument("names", metavar="[FN]...", nargs=-1)
@click.option(
    "--for", "targets", multiple=True, required=True, metavar="TARGET", help="cpu, or one or more of sm_80, sm_90a, sm_100a."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="The folder to make.")
@SIZE
@SCHEDULE
@click.option("--sign", type=click.Path(path_type=Path), metavar="KEY", help="Sign the hashes with this private key (PEM).")
@click.option("--torch", is_flag=True, help="Add operators of PyTorch: C++ on LibTorch's stable ABI, and how to build it.")
@click.option("--tuned", type=click.Path(path_type=Path), metavar="FILE", help="Add what a search found: its tune.json.")
@JOBS
@JSON
@click.pass_obj
def command(
    console: Console,
    file: Path,
    names: tuple[str, ...],
    targets: tuple[str, ...],
    output: Path,
    sizes: tuple[str, ...],
    schedule: str,
    sign: Path | None,
    torch: bool,
    tuned: Path | None,
    jobs: int,
    json: bool,
) -> int:
    """Write a package that C, C++ and Rust can use, with no Python in it.

    Without FN every function of the file is built. DIR is made whole or not at all.
    """
    given = parse_sizes(sizes)
    functions, fixed = _functions(file, names, given)
    name = identifier(functions[0].name if len(functions) == 1 else file.stem)
    with console.working(f"building {name} for {', '.join(targets)}") as progress:
        made = build(
            functions,
            targets,
            output,
            sizes=fixed,
            schedule=schedule,
            name=name,
            jobs=jobs,
            progress=progress,
            sign=sign,
            consts={size: value for size, value in given.items() if size not in fixed},
            torch=torch,
            tuned=tuned,
        )
    _show(console, made)
    return 0


def _functions(file: Path, names: tuple[str, ...], sizes: dict[str, int]) -> tuple[tuple[Function, ...], dict[str, int]]:
    """The functions to build, checked, and the sizes that are not consts. Raises TexprError, click.UsageError."""
    program, rest = read_program(file, sizes)
    functions = tuple(select(program, name) for name in names) or program.functions
    refuse_unknown(rest, functions)
    found = tuple(finding for function in functions for finding in check(at_sizes(function, rest)))
    if found:
        raise TexprError(found)
    if not functions:
        raise click.UsageError("the file has no function")
    return functions, rest


def _show(console: Console, made: Artifact) -> None:
    console.say(f"{made.directory}: {made.name} for {', '.join(made.targets)}, {len(made.files)} files")
    for (function, target), code in made.binaries.items():
        for kernel in code.kernels:
            used = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in kernel.numbers().items() if number)
            console.say(f"  {function} for {target}: {kernel.kernel}: {used}")
    schedules = believed_schedules(made.proofs)
    tell_believed(console, schedules)
    what = {"directory": str(made.directory), "name": made.name, "targets": made.targets, "files": made.files}
    console.data({"ok": True, **what, "believed_schedules": [name for name, _ in schedules]})
