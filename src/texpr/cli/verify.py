"""`texpr verify`: is an artifact what was built, and is it proved again?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import click

from texpr import artifact
from texpr.cli.console import Console
from texpr.cli.program import JOBS
from texpr.toolchain.workers import shared


@click.command("verify")
@click.argument("directory", type=click.Path(path_type=Path))
@JOBS
@click.option("--json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(console: Console, directory: Path, jobs: int, json: bool) -> int:
    """Recheck the artifact in DIRECTORY: the hash of each file, the proof of each plan, the print of each source."""
    with console.working("proving it again"):
        manifest = artifact.verify(directory, partial(shared, jobs=jobs))
    counts, schedules, believed = (
        artifact.counts(directory),
        artifact.believed_schedules(directory),
        artifact.believed(directory),
    )
    console.say(f"{manifest['name']}: every file is as it was built")
    for target, found in counts.items():
        listed = ", ".join(f"{number} {verdict}" for verdict, number in found.items() if number)
        console.say(f"  {target}: {listed or 'nothing to prove'}")
    tell_believed(console, schedules)
    for plan in believed:
        console.say(f"  {plan}: not proved again, as no text says its program")
    told = {"proof": counts, "believed": believed, "believed_schedules": [name for name, _ in schedules]}
    console.data({"ok": True, "name": manifest["name"], **told})
    return 0


def tell_believed(console: Console, schedules: Iterable[tuple[str, int]]) -> None:
    """Says which schedules are believed."""
    for name, left in schedules:
        console.say(f"  {name}: its schedule is believed: {left} of the things that it has to keep cannot be proved")
