"""`texpr verify`: is an artifact what was built, and is it proved again?"""

from __future__ import annotations

import json as json_text
from functools import partial
from pathlib import Path
from typing import Any

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
    counts, schedules, believed = *_counts(directory), artifact.believed(directory)
    console.say(f"{manifest['name']}: every file is as it was built")
    for target, found in counts.items():
        listed = ", ".join(f"{number} {verdict}" for verdict, number in found.items() if number)
        console.say(f"  {target}: {listed or 'nothing to prove'}")
    for target, name, open_ in schedules:
        console.say(f"  {target}/{name}: its schedule is believed, as {open_} of what it has to keep are not proved")
    for plan in believed:
        console.say(f"  {plan}: not proved again, as no text says its program")
    listed = [f"{target}/{name}" for target, name, _ in schedules]
    console.data({"ok": True, "name": manifest["name"], "proof": counts, "believed": believed, "believed_schedules": listed})
    return 0


def _counts(directory: Path) -> tuple[dict[str, dict[str, int]], list[tuple[str, str, int]]]:
    """How many obligations have which verdict, by target; none for an artifact without a proof. And the functions of which it is
    not proved that they are laid out as they were written, with how much is open."""
    file = directory / "proof.json"
    if not file.exists():
        return {}, []
    data: dict[str, Any] = json_text.loads(file.read_text(encoding="utf-8"))
    found: dict[str, dict[str, int]] = {}
    believed: list[tuple[str, str, int]] = []
    for target, proofs in data["targets"].items():
        total = found.setdefault(target, {})
        for proof in proofs:
            schedule = proof.get("schedule", {"counts": {}})
            for verdict, number in (*proof["counts"].items(), *(() if _is_open(schedule) else schedule["counts"].items())):
                total[verdict] = total.get(verdict, 0) + number
            if _is_open(schedule):
                believed.append((target, proof["function"], schedule["counts"]["undecided"]))
    return found, believed


def _is_open(schedule: dict[str, Any]) -> bool:
    return bool(schedule["counts"].get("undecided"))
