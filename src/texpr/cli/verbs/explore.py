"""`texpr explore`: a page in a browser, or as a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, cast

import click

from texpr.cli.app import exit_code
from texpr.cli.console import Console
from texpr.cli.files import write_whole
from texpr.cli.program import JSON, SCHEDULE, SIZE, parse_sizes
from texpr.explore.asked import LARGEST_TEXT, TARGET, Asked
from texpr.explore.look import look
from texpr.explore.page.document import alone
from texpr.isa.registry import resolve as target_of
from texpr.sources import read_source
from texpr.support.diagnostic import CompilerBug, TexprError, error
from texpr.support.lazy import missing, resolve

Serve: TypeAlias = Callable[[Asked, int, float, Callable[[str], None]], None]

START = """-- Write a program here, or take an example from the menu above.
fn saxpy(a: f32, x: f32[n], y: f32[n]): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}
"""


@click.command("explore")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.argument("name", metavar="[FN]", required=False)
@click.option("--for", "target", default=TARGET, show_default=True, metavar="TARGET", help="The target at first.")
@SIZE
@SCHEDULE
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="PAGE.html", help="Write one file, and serve nothing.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="a free one", help="Where to listen.")
@click.option("--seconds", type=click.FloatRange(min=1), default=60, show_default=True, help="How long one answer may take.")
@JSON
@click.pass_obj
def command(
    console: Console,
    file: Path | None,
    name: str | None,
    target: str,
    sizes: tuple[str, ...],
    schedule: str,
    output: Path | None,
    port: int,
    seconds: float,
    json: bool,
) -> int:
    """Show a program beside its forms, code, proof and pictures, on a page.

    The page is served on this machine alone, at an address that is printed, until Ctrl-C. It needs the extra `explore`: pip
    install 'texpr-compiler[explore]'. With -o it is one file, which needs neither a server nor a network, nor that extra.
    """
    target_of(target)
    asked = _asked(file, name or "", target, schedule, tuple(parse_sizes(sizes).items()))
    if output is not None:
        return _write(console, asked, output)
    with missing(_lacking):
        serve = cast("Serve", resolve("texpr.explore.server:serve"))

    def told(address: str) -> None:
        console.say(f"{address}\nopen it in a browser on this machine; Ctrl-C ends it")
        console.data({"ok": True, "address": address})
        sys.stdout.flush()

    try:
        serve(asked, port, seconds, told)
    except OSError as fault:
        help = "leave --port away: a free one is taken"
        raise error("E0827", None, f"cannot listen at port {port}: {fault.strerror or fault}", help=help) from None
    return 0


def _lacking(package: str) -> TexprError:
    help = "pip install 'texpr-compiler[explore]'; a page as a file, by -o, does without"
    return error("E0826", None, f"the page needs `{package}`, which is not installed", help=help)


def _asked(file: Path | None, name: str, target: str, schedule: str, sizes: tuple[tuple[str, int], ...]) -> Asked:
    if file is None:
        return Asked(START, "program.te", name, target, schedule, sizes)
    source = read_source(file)
    if len(source.text) > LARGEST_TEXT:
        raise error("E0854", None, f"`{file}` has more than the {LARGEST_TEXT} characters that a page takes")
    return Asked(source.text, file.name, name, target, schedule, sizes)


def _write(console: Console, asked: Asked, output: Path) -> int:
    """The page as a file: of a program with errors it shows these; its exit code is that of `check`."""
    with console.working(f"compiling {asked.name}"):
        seen = look(asked)
        if seen.fault is not None:
            raise CompilerBug(": ".join(seen.fault))
        page = alone(seen)
    write_whole(output, lambda stream: stream.write(page.encode()))
    console.diagnostics(seen.problems)
    console.say(f"{output}: {seen.function.name if seen.function else 'no function'} for {asked.target}")
    console.data({"ok": not seen.problems, "file": str(output)})
    return exit_code(seen.problems)
