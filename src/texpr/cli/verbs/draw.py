"""`texpr draw`: pictures of a function, as SVG."""

from __future__ import annotations

from pathlib import Path

import click

from texpr.cli.console import Console
from texpr.cli.files import write_whole
from texpr.cli.program import FILE, FUNCTION, JSON, SCHEDULE, SIZE, legal_function, parse_sizes
from texpr.draw.kinds import KINDS, Undrawable, drawn
from texpr.isa.registry import resolve


@click.command("draw")
@FILE
@FUNCTION
@click.option("--what", type=click.Choice(list(KINDS)), required=True, help="What to draw.")
@click.option("-o", "output", type=click.Path(path_type=Path), required=True, metavar="OUT.svg", help="Where to write it.")
@click.option("--instr", "instr", metavar="NAME", help="For --what fragment: this instruction, whether it is used or not.")
@click.option("--for", "target", default="sm_90a", show_default=True, metavar="TARGET", help="The target of the schedule.")
@SIZE
@SCHEDULE
@JSON
@click.pass_obj
def command(
    console: Console,
    file: Path,
    name: str | None,
    what: str,
    output: Path,
    instr: str | None,
    target: str,
    sizes: tuple[str, ...],
    schedule: str,
    json: bool,
) -> int:
    """Draw a function as SVG.

    domain: its IterDomains, from the loops as written to those that run, and what guards them; layout: how buffers lie whose
    memory a schedule changes; mapping: which thread touches which element, and what one warp's requests meet; fragment: which
    lane and register has which element of an instruction; tma: copies of boxes, with their graphs, tiles and banks; timeline:
    where buffers live, and which dependences each barrier covers; columns: tensor memory over time.
    """
    if output.suffix != ".svg":
        raise click.UsageError(
            f"-o takes a name that ends in .svg, not `{output.name}`; `rsvg-convert` makes PNG and PDF of it"
        )
    if instr is not None and what != "fragment":
        raise click.UsageError(f"--instr is for --what fragment, not for --what {what}")
    machine = resolve(target)
    function, given_sizes = legal_function(file, name, parse_sizes(sizes))
    with console.working(f"drawing {function.name}"):
        try:
            picture = drawn(function, what, machine, given_sizes, schedule, instr)
        except Undrawable as reason:
            raise click.UsageError(str(reason)) from None
    write_whole(output, lambda stream: stream.write(picture.encode()))
    console.say(f"{output}: {what} of {function.name}")
    console.data({"ok": True, "function": function.name, "what": what, "file": str(output)})
    return 0
