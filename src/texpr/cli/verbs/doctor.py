"""`texpr doctor`: what is installed, and what each target can do here."""

from __future__ import annotations

import platform
from pathlib import Path

import click

from texpr import __version__
from texpr.cli.console import Console
from texpr.cli.report import PACKAGES, report, versions
from texpr.toolchain.doctor import Finding, State, doctor
from texpr.toolchain.machine import this_machine


@click.command("doctor")
@click.option("--report", "wanted", is_flag=True, help="Print a block of text for a report, without names of persons.")
@click.option("--json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(console: Console, wanted: bool, json: bool) -> int:
    """Show what is installed and what each target can do here."""
    machine = this_machine()
    with console.working("looking for compilers"):
        found = doctor(machine)
    if wanted:
        text = report(found, machine.environment, Path.home())
        console.say(text)
        console.data({"ok": True, "report": text})
        return 0
    packages = versions(PACKAGES)
    console.say(f"texpr {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    console.say(", ".join(f"{name} {version}" for name, version in packages.items()))
    console.say("")
    width = max(len(finding.subject) for finding in found)
    for finding in found:
        console.say(f"{finding.subject:<{width}}  {finding.state.value:<7}  {finding.detail}")
        if finding.help is not None and finding.state is not State.OK:
            console.say(f"{'':<{width}}  {'':<7}  help: {finding.help}")
    every = {"texpr": __version__, "python": platform.python_version(), **packages}
    console.data({"ok": True, "versions": every, "findings": [_data(finding) for finding in found]})
    return 0


def _data(finding: Finding) -> dict[str, object]:
    return {"subject": finding.subject, "state": finding.state.value, "detail": finding.detail, "help": finding.help}
