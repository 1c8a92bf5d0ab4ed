"""`texpr run`: a function on arrays."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import click
import numpy as np

from texpr.cli.arrays import make_arrays, parse_arguments
from texpr.cli.bounds import bounds_of
from texpr.cli.compare import judge
from texpr.cli.console import Console
from texpr.cli.execute import PLACES, Setting, built, call, interpreted
from texpr.cli.files import output_folder, write_whole
from texpr.cli.program import ARGUMENTS, FILE, FUNCTION, JSON, SCHEDULE, SEED, SIZE, legal_function, parse_sizes
from texpr.emulator import IN_ORDER, LOCKSTEP
from texpr.interp.dtypes import Array
from texpr.ir.program.selection import AUTO, NONE, find_schedule
from texpr.ir.value import Buffer
from texpr.support.diagnostic import Diagnostic
from texpr.support.render import as_data, duration


@click.command("run")
@FILE
@FUNCTION
@ARGUMENTS
@SIZE
@click.option("--on", type=click.Choice(PLACES), default="cpu", show_default=True, help="Where to run.")
@SCHEDULE
@click.option("--against", type=click.Choice(("interp",)), help="Compare the results with the interpreter's.")
@SEED
@click.option(
    "--order",
    default="in-order",
    show_default=True,
    metavar="in-order|lockstep|N",
    help="How the emulator orders threads; N is the seed of a random order.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR", help="Write each result to DIR/NAME.npy.")
@JSON
@click.pass_obj
def command(
    console: Console,
    file: Path,
    name: str | None,
    arguments: tuple[str, ...],
    sizes: tuple[str, ...],
    on: str,
    schedule: str,
    against: str | None,
    seed: int,
    order: str,
    output: Path | None,
    json: bool,
) -> int:
    """Run a function on arrays, and show its results."""
    function, fixed = legal_function(file, name, parse_sizes(sizes))
    if schedule not in (AUTO, NONE):
        find_schedule(function, schedule)  # before anything is made or written
    arrays, known = make_arrays(function, parse_arguments(function, arguments), fixed, seed)
    setting = Setting(fixed, known, schedule, _order(order, on))
    folder = output_folder(output) if output is not None else None
    with console.working(f"running {function.name} on {on}"):
        kernel = built(on, function, setting)
        execute = interpreted(function, setting) if kernel is None else partial(call, kernel, setting=setting)
        start = time.perf_counter()
        results = execute(arrays)
        seconds = time.perf_counter() - start
    buffers = {buffer.name: buffer for buffer in (*function.results, *function.params) if buffer.name in results}
    rows = [_summary(buffers[name], result) for name, result in results.items()]
    console.table(("result", "type", "shape", "min", "max"), [tuple(map(str, row.values())) for row in rows])
    console.say(f"{function.name} on {on}: {duration(seconds)}")
    if folder is not None:
        for result_name, result in results.items():
            _save(folder / f"{result_name}.npy", result)
    lines: tuple[str, ...] = ()
    found: tuple[Diagnostic, ...] = ()
    if against is not None:
        with console.working("running the interpreter"):
            expected = interpreted(function, setting)(arrays)
            bounds = {} if kernel is None else bounds_of(function, kernel.plan, arrays, known)
        lines, found = judge(function, results, expected, bounds)
    for line in lines:
        console.say(line)
    console.diagnostics(found)
    console.data(
        {"ok": not found, "on": on, "seconds": seconds, "results": rows, "diagnostics": [as_data(finding) for finding in found]}
    )
    return 1 if found else 0


def _order(text: str, on: str) -> int:
    if text != "in-order" and on != "emulator":
        raise click.UsageError("--order is for --on emulator")
    named = {"in-order": IN_ORDER, "lockstep": LOCKSTEP}
    if text in named:
        return named[text]
    if not text.isdecimal():
        raise click.UsageError(f"--order takes in-order, lockstep or a number, not `{text}`")
    return int(text)


def _summary(buffer: Buffer, result: Array) -> dict[str, object]:
    """One row of the table: a result's name, type, shape and range."""
    least = greatest = "–"
    if result.size:
        wide = result.astype(np.float64) if buffer.dtype.is_float else result
        least, greatest = (f"{float(bound):.6g}" if buffer.dtype.is_float else str(bound) for bound in (wide.min(), wide.max()))
    return {"name": buffer.name, "type": str(buffer.dtype), "shape": list(result.shape), "min": least, "max": greatest}


def _save(path: Path, result: Array) -> None:
    write_whole(path, lambda file: np.save(file, result, allow_pickle=False))
