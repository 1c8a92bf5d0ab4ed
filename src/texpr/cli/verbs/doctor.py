"""`texpr doctor`: what is installed, and what each target can do here."""

from __future__ import annotations

import platform
from importlib import metadata

import click

from texpr import __version__
from texpr.cli.console import Console
from texpr.toolchain.doctor import Finding, State, doctor
from texpr.toolchain.machine import this_machine

PACKAGES = ("numpy", "ml_dtypes", "islpy", "click", "rich")


@click.command("doctor")
@click.option("--json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(console: Console, json: bool) -> int:
    """Show what is installed and what each target can do here."""
    with console.working("looking for compilers"):
        found = doctor(this_machine())
    packages = {name: metadata.version(name) for name in PACKAGES}
    console.say(f"texpr {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    console.say(", ".join(f"{name} {version}" for name, version in packages.items()))
    console.say("")
    width = max(len(finding.subject) for finding in found)
    for finding in found:
        console.say(f"{finding.subject:<{width}}  {finding.state.value:<7}  {finding.detail}")
        if finding.help is not None and finding.state is not State.OK:
            console.say(f"{'':<{width}}  {'':<7}  help: {finding.help}")
    versions = {"texpr": __version__, "python": platform.python_version(), **packages}
    console.data({"ok": True, "versions": versions, "findings": [_data(finding) for finding in found]})
    return 0


def _data(finding: Finding) -> dict[str, object]:
    return {"subject": finding.subject, "state": finding.state.value, "detail": finding.detail, "help": finding.help}
