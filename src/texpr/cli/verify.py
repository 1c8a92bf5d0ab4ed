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
    counts, believed = _counts(directory), artifact.believed(directory)
    console.say(f"{manifest['name']}: every file is as it was built")
    for target, found in counts.items():
        listed = ", ".join(f"{number} {verdict}" for verdict, number in found.items() if number)
        console.say(f"  {target}: {listed or 'nothing to prove'}")
    for plan in believed:
        console.say(f"  {plan}: not proved again, as no text says its program")
    console.data({"ok": True, "name": manifest["name"], "proof": counts, "believed": believed})
    return 0


def _counts(directory: Path) -> dict[str, dict[str, int]]:
    """How many obligations have which verdict, by target; none for an artifact without a proof."""
    file = directory / "proof.json"
    if not file.exists():
        return {}
    data: dict[str, Any] = json_text.loads(file.read_text(encoding="utf-8"))
    found: dict[str, dict[str, int]] = {}
    for target, proofs in data["targets"].items():
        total = found.setdefault(target, {})
        for proof in proofs:
            for verdict, number in proof["counts"].items():
                total[verdict] = total.get(verdict, 0) + number
    return found
