"""`texpr verify`: is an artifact what a build leaves, and is it proved again?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from texpr import artifact
from texpr.artifact.place import TUNED
from texpr.cli.console import Console
from texpr.cli.program import JOBS, read_program
from texpr.ir.program import Function
from texpr.sizes import fix
from texpr.support.diagnostic import TexprError, error
from texpr.support.record import replace
from texpr.toolchain import Toolchain, this_machine
from texpr.toolchain.limits import bounded
from texpr.toolchain.workers import shared

UNPROVED = 4
"""The exit code where all files are as built, but something is not proved, which its text permits."""


@click.command("verify")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--rebuild", is_flag=True, help="Run the compilers again, and compare what they make.")
@click.option("--source", type=click.Path(path_type=Path), metavar="FILE.te", help="The program must be the one in this file.")
@click.option("--key", type=click.Path(path_type=Path), metavar="PUB", help="It must be signed by this public key (PEM).")
@JOBS
@click.option("--seconds", type=click.IntRange(min=1), default=3600, show_default=True, help="Processor time of each process.")
@click.option(
    "--memory", type=click.IntRange(min=1), default=16, show_default=True, metavar="GIB", help="Memory of each process."
)
@click.option("--json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(
    console: Console, directory: Path, rebuild: bool, source: Path | None, key: Path | None, jobs: int,
    seconds: int, memory: int, json: bool,
) -> int:  # fmt: skip
    """Derive all that is in DIRECTORY again, and compare: texts from the plans, which are proved; with --rebuild binaries, too.

    Exits with 4 where something is not proved that the program lets pass (`#unproved`).
    """
    if not directory.exists():
        raise error("E0850", None, f"there is no folder `{directory}`")
    holds = None if key is None else artifact.signs(key)
    authored = None if source is None else partial(_authored, source)
    limits = bounded(seconds, memory << 30, lambda: _late(directory, seconds))
    with console.working("proving it again") as progress, limits, _compilers(rebuild, jobs, progress) as tools:

        def share(task: Callable[[int], bytes], names: Sequence[str]) -> Iterator[bytes]:
            for number, answer in enumerate(shared(task, names, jobs), 1):
                progress(f"{names[number - 1]}, {number} of {len(names)}")
                yield answer

        found = artifact.verify(directory, share, rebuild=tools, source=authored, key=holds)
    return _tell(console, found)


def _tell(console: Console, found: artifact.Verified) -> int:
    counts, plans = artifact.counts(found.proofs), artifact.open_plans(found.proofs)
    schedules = artifact.believed_schedules(found.proofs)
    made = found.files - len(found.not_proved)
    console.say(f"{found.name}: {made} of {found.files} files are as texpr writes them")
    for target, verdicts in counts.items():
        listed = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items() if number)
        console.say(f"  {target}: {listed or 'nothing to prove'}")
    for name, left in plans:
        console.say(f"  {name}: unproved: {left} of the things that its kernels have to keep")
    tell_believed(console, schedules)
    if found.by_key:
        console.say("  signed by this key")
    console.say(_left(found))
    unproved = {name: {"plan": left, "schedule": 0} for name, left in plans}
    for name, left in schedules:
        unproved.setdefault(name, {"plan": 0, "schedule": 0})["schedule"] = left
    told = {"proof": counts, "unproved": unproved, "believed_schedules": [name for name, _ in schedules]}
    kept = {"not_proved": found.not_proved, "signed": found.signed, "signed_by_key": found.by_key}
    console.data({"ok": not unproved, "name": found.name, "targets": found.targets, **told, **kept})
    return UNPROVED if unproved else 0


def _left(found: artifact.Verified) -> str:
    """Which files are not proved, and why."""
    given = [path for path in found.not_proved if path == TUNED]
    made = ", ".join(path for path in found.not_proved if path not in given)
    told = [f"not proved, as no compiler was run (--rebuild): {made}"] if made else []
    told += [f"not proved, as nothing proves what was measured: {', '.join(given)}"] if given else []
    return "; ".join(told) or "every file was made again"


def tell_believed(console: Console, schedules: Iterable[tuple[str, int]]) -> None:
    """Prints which schedules are believed, not proved."""
    for name, left in schedules:
        console.say(f"  {name}: its schedule is believed: {left} of the things that it has to keep cannot be proved")


@contextmanager
def _compilers(wanted: bool, jobs: int, progress: Callable[[str], None]) -> Generator[Toolchain | None]:
    """The compilers of this machine, without the cache, which anybody may have written to."""
    if not wanted:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="texpr-rebuild-") as cache:
        yield Toolchain(replace(this_machine(jobs), cache=Path(cache)), progress)


def _authored(source: Path, name: str, fixed: Mapping[str, int]) -> Function:
    """The function of a source, at the recorded sizes. Raises TexprError."""
    program, rest = read_program(source, dict(fixed))
    if name not in (function.name for function in program.functions):
        raise error("E0821", None, f"{source} has no function `{name}`, which the artifact has")
    return fix(program[name], rest)[0]


def _late(directory: Path, seconds: int) -> TexprError:
    return error("E0822", None, f"{directory} took more than {seconds} s to verify", help="give it more: --seconds")
