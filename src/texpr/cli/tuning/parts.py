"""The parts of a search that the command puts together: the problem, where its trials are kept, who measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import click

from texpr.cli.arrays import make_arrays
from texpr.delivery import at_hand
from texpr.ir.program import Function
from texpr.isa.registry import DEVICES, resolve
from texpr.support import lazy
from texpr.support.diagnostic import TexprError, error
from texpr.support.record import Record
from texpr.toolchain import Toolchain, this_machine
from texpr.tune.crews.here import Here
from texpr.tune.problem import Problem, identity, space_of
from texpr.tune.search import Crew, Trials
from texpr.tune.space import Space

MEASURE = "texpr.cli.tuning.measure:measure"

CLUSTER = "dask://"


class Asked(Record):
    """What the command was asked for."""

    file: Path
    text: str
    function: str
    target: str
    sizes: dict[str, int]
    schedule: str
    objective: str | None
    seed: int


def problem_of(asked: Asked) -> Problem:
    """The problem; the objective is by default the time on a CPU, and the bound of a GPU. Raises click.UsageError."""
    is_device = resolve(asked.target).is_launched
    objective = asked.objective or ("bound" if is_device else "time")
    if objective == "time" and is_device:
        raise click.UsageError("--objective time is for --for cpu: it is measured on this machine's processor")
    target = at_hand(asked.target, Toolchain(this_machine()))
    if objective == "bound" and target not in DEVICES:
        raise click.UsageError(f"--objective bound is for GPUs: nothing is known of how fast a {target} is")
    return Problem(asked.text, str(asked.file), asked.function, target, asked.sizes, asked.schedule, objective, asked.seed)


def require_measurable(problem: Problem, function: Function) -> None:
    """Raises click.UsageError where the sizes that a measurement of time needs are not known."""
    if problem.objective == "time":
        names = {sym.name for sym in function.sizes}
        known = {name: size for name, size in problem.sizes.items() if name in names}
        make_arrays(function, {param.name: "zeros" for param in function.params}, known, problem.seed)


def begun(
    problem: Problem, given: Mapping[str, tuple[int, ...]], storage: str | None, folder: Callable[[], Path]
) -> tuple[Space, Trials]:
    """The space of a problem, and its trials so far. Raises TexprError E0840, E0841, E0842."""
    study = _part("texpr.tune.study:Study", "tune")
    space = space_of(problem, given)
    url = f"sqlite:///{folder() / 'trials.db'}" if storage is None else storage
    about = {key: value for key, value in problem.data.items() if key != "text"}
    return space, cast("Trials", study(url, identity(problem, space), space, about))


def crew_of(workers: str, seconds: float) -> Crew:
    """The workers of `--workers`. Raises click.UsageError, TexprError E0840, E0844."""
    if workers.startswith(CLUSTER):
        return cast("Crew", _part("texpr.tune.crews.cluster:Cluster", "cluster")(workers, MEASURE, seconds))
    if not workers.isdecimal() or int(workers) < 1:
        raise click.UsageError(f"--workers takes a number of processes, or dask://HOST:PORT, not `{workers}`")
    return Here(MEASURE, int(workers), seconds)


def _part(reference: str, extra: str) -> Any:
    """A part that needs an extra. Raises TexprError E0840 where that is not installed."""
    with lazy.missing(lambda package: lacking(package, extra)):
        return lazy.resolve(reference)


def lacking(module: str, extra: str) -> TexprError:
    """The error for a package that is not installed."""
    help = f"pip install 'texpr-compiler[{extra}]'"
    return error("E0840", None, f"this search needs `{module}`, which is not installed", help=help)
