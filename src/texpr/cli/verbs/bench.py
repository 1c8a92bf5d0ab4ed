"""`texpr bench`: times of a function, beside those of others that compute the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from texpr import __version__
from texpr.cli.arrays import make_arrays, parse_arguments
from texpr.cli.bench.point import Asked, Point, measure
from texpr.cli.bench.references import find_reference
from texpr.cli.bench.show import data, notes, picture, rows
from texpr.cli.bench.sweep import points, varied
from texpr.cli.console import Console
from texpr.cli.execute import Setting
from texpr.cli.files import write_whole
from texpr.cli.program import ARGUMENTS, FILE, FUNCTION, JSON, SCHEDULE, SEED, legal_function
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO, NONE, find_schedule

PLACES = ("cpu", "cuda")


@click.command("bench")
@FILE
@FUNCTION
@ARGUMENTS
@click.option(
    "--size", "sizes", multiple=True, metavar="NAME=N,…",
    help="Fix a size or const; several numbers are measured one after the other.",
)  # fmt: skip
@click.option("--on", type=click.Choice(PLACES), default="cpu", show_default=True, help="Where to run.")
@SCHEDULE
@click.option(
    "--against", "references", multiple=True, metavar="MODULE:FUNCTION",
    help="Also time a Python function, on NumPy arrays or PyTorch tensors; may be given several times.",
)  # fmt: skip
@click.option(
    "--tolerance", type=click.FloatRange(min=0), metavar="PART",
    help="How far floats may be from a reference's, as a part of the largest one.  [default: as for `run --against`]",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, metavar="SECONDS",
    help="How long to measure each, at each size.",
)  # fmt: skip
@click.option(
    "--cache", type=click.Choice(("cold", "warm")), default="cold", show_default=True,
    help="Whether caches are emptied before each run.",
)  # fmt: skip
@SEED
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="OUT.svg", help="Draw the times over several sizes.")
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
    references: tuple[str, ...],
    tolerance: float | None,
    seconds: float,
    cache: str,
    seed: int,
    output: Path | None,
    json: bool,
) -> int:
    """Time a function, beside references whose results are compared with its own first.

    Inputs that are not given are random.

    Several sizes are measured one after the other: --size n=1000,2000,4000; lists of several sizes go on together.
    """
    found = points(sizes)
    _refuse_picture(output, found)
    # All texts, sizes and references are looked at before anything is built.
    checked = [legal_function(file, name, each) for each in found]
    if schedule not in (AUTO, NONE):
        find_schedule(checked[0][0], schedule)
    words = parse_arguments(checked[0][0], arguments, "random")
    asked = Asked(on, tuple(map(find_reference, dict.fromkeys(references))), seconds, cache == "cold", tolerance)
    done: list[Point] = []
    with console.working(f"measuring {checked[0][0].name} on {on}") as progress:
        for given, (function, fixed) in zip(found, checked, strict=True):
            progress(", ".join(f"{size}={value}" for size, value in given.items()))
            arrays, known = make_arrays(function, words, fixed, seed)
            done.append(measure(function, arrays, Setting(fixed, known, schedule), asked))
    function = checked[0][0]
    date = datetime.now(UTC).date().isoformat()
    if output is not None:
        drawn = picture(f"{function.name} on {on}: {done[0].device}, {date}", done)
        write_whole(output, lambda stream: stream.write(drawn.encode()))
    _show(console, function, on, done, date, output)
    how = {"function": function.name, "on": on, "device": done[0].device, "date": date, "texpr": __version__}
    told = {"schedule": schedule, "cache": cache, "flushed_bytes": done[0].flushed, "how": done[0].how, "seconds": seconds}
    model = None if done[0].limit is None else done[0].limit.device
    console.data({"ok": True, **how, **told, "model": model, "points": [data(point) for point in done], "diagnostics": []})
    return 0


def _refuse_picture(output: Path | None, found: Sequence[dict[str, int]]) -> None:
    """Raises click.UsageError where a picture is wanted that cannot be."""
    if output is None:
        return
    if output.suffix != ".svg":
        raise click.UsageError(f"-o takes a name that ends in .svg, not `{output.name}`")
    if not varied(found):
        raise click.UsageError("-o draws times over sizes: give several, as --size n=1000,2000,4000")


def _show(console: Console, function: Function, on: str, done: Sequence[Point], date: str, output: Path | None) -> None:
    """Prints what was found."""
    steady = {name: size for name, size in done[0].sizes.items() if all(each.sizes[name] == size for each in done)}
    at = f" at {', '.join(f'{name} = {size}' for name, size in steady.items())}" if steady else ""
    console.say(f"{function.name} on {on}{at}: {done[0].device}, {date}")
    for line in notes(done[0]):
        console.say(f"  {line}")
    for point in done[:1]:
        for line in point.agreed:
            console.say(f"  {line}")
    console.say("")
    head, *rest = rows(done)
    console.table(head, rest)
    if output is not None:
        console.say(f"\n{output}: times over {', '.join(varied([each.sizes for each in done]))}")
