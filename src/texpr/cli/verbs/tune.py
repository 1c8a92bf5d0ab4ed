"""`texpr tune`: a search for the best schedule."""

from __future__ import annotations

import json as json_of
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from texpr.cli.console import Console
from texpr.cli.files import output_folder, rewrite, write_whole
from texpr.cli.program import FILE, FUNCTION, JSON, SCHEDULE, SEED, SIZE, legal_function, parse_sizes
from texpr.cli.tuning.measure import folder_of
from texpr.cli.tuning.parts import Asked, begun, crew_of, problem_of, require_measurable
from texpr.ir.program import Schedule
from texpr.ir.program.text import print_schedule
from texpr.sources import read_source
from texpr.support.diagnostic import Diagnostic, Note, TexprError
from texpr.tune.outcome import FAILED, REFUSED
from texpr.tune.problem import OBJECTIVES, Problem, schedule_at
from texpr.tune.report import Found, best, default, different, report
from texpr.tune.search import Over, search
from texpr.tune.space import Space, Wrong, parse_values
from texpr.tune.written import block, text_with

SHOWN = 5
"""Reasons of refusals that are shown, the most frequent first."""


@click.command("tune")
@FILE
@FUNCTION
@click.option("--for", "target", default="cpu", show_default=True, metavar="TARGET", help="cpu, sm_80, sm_90a, …")
@SIZE
@SCHEDULE
@click.option(
    "--objective",
    type=click.Choice(list(OBJECTIVES)),
    help="time: of this machine's CPU (by default for cpu); bound: the model's, of a GPU's kernels (by default for others).",
)
@click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="NAME=VALUES",
    help="Values of a const of the schedule, or of a nest's candidates: 16,32,64, or 8..64:8, or 8..=256:*2.",
)
@click.option(
    "--trials", type=click.IntRange(min=1), default=64, show_default=True, metavar="N", help="Points to measure, in all."
)
@click.option(
    "--workers", default="1", show_default=True, metavar="N|dask://HOST:PORT", help="Processes that measure, or a Dask cluster."
)
@click.option("--seconds", type=click.FloatRange(min=1), default=600.0, show_default=True, help="The limit of one trial.")
@click.option("--storage", metavar="URL", help="Where trials are kept, for SQLAlchemy. Default: a SQLite file in the results.")
@click.option("--results", type=click.Path(path_type=Path), metavar="DIR", help="Where tune.json goes. Default: FILE.tune.")
@SEED
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE.te", help="Write the text with the best schedule."
)
@click.option("--write", is_flag=True, help="Write the best schedule into FILE itself.")
@JSON
@click.pass_obj
def command(
    console: Console,
    file: Path,
    name: str | None,
    target: str,
    sizes: tuple[str, ...],
    schedule: str,
    objective: str | None,
    spaces: tuple[str, ...],
    trials: int,
    workers: str,
    seconds: float,
    storage: str | None,
    results: Path | None,
    seed: int,
    output: Path | None,
    write: bool,
    json: bool,
) -> int:
    """Search for the schedule by which a function is fastest, and resume where an earlier search was stopped.

    Every candidate is proved, and compared with the interpreter at small sizes, before it is measured. The search is over the
    consts that only the function's schedule uses; without a schedule, over what the planner could choose. It needs the extra
    `tune`: pip install 'texpr-compiler[tune]'.
    """
    given = parse_sizes(sizes)
    function, _ = legal_function(file, name, given)
    asked = Asked(file, read_source(file).text, function.name, target, given, schedule, objective, seed)
    problem = problem_of(asked)
    require_measurable(problem, function)
    folder = results or folder_of(file)
    space, study = begun(problem, parse_spaces(spaces), storage, lambda: output_folder(folder))
    with console.working(f"tuning {function.name}") as progress:
        crew = crew_of(workers, seconds)
        progress(_progress(list(study.trials()), space, trials))
        search(study, problem, crew, trials, lambda found: progress(_progress(found, space, trials)))
    found = different(list(study.trials()), space)
    least = best(found)
    if least is None:
        raise none_measured(problem, found)
    text = _schedule_text(problem, least)
    data = report(problem, space, study.name, found, text)
    written = output_folder(folder) / "tune.json"
    write_whole(written, lambda to: to.write((json_of.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()))
    _show(console, problem, space, found, least, text)
    _write_back(console, problem, least, file if write else None, output)
    console.say(f"all trials: {written}")
    console.data({"ok": True, **data})
    return 0


def parse_spaces(given: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The values of `--space NAME=VALUES`. Raises click.UsageError."""
    found: dict[str, tuple[int, ...]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--space takes NAME=16,32 or NAME=8..64:8, not `{text}`")
        if name in found:
            raise click.UsageError(f"the space of `{name}` is given twice")
        try:
            found[name] = parse_values(values)
        except Wrong as reason:
            raise click.UsageError(f"--space {name}: {reason}") from None
    return found


def none_measured(problem: Problem, found: Sequence[Over]) -> TexprError:
    """The error where no candidate could be measured, with the most frequent reasons."""
    notes = tuple(Note(f"{count} times: {reason}") for reason, count in _reasons(found)[:SHOWN])
    reason = f"none of {len(found)} candidates of `{problem.function}` could be measured"
    return TexprError([Diagnostic("E0843", None, reason, notes)])


def _reasons(found: Sequence[Over]) -> list[tuple[str, int]]:
    """Why candidates were not measured, the most frequent first."""
    every = (each.outcome for each in found if each.outcome.state in (REFUSED, FAILED))
    return Counter(f"{each.code}: {each.reason}" if each.code else each.reason for each in every).most_common()


def _progress(trials: Sequence[Over], space: Space, most: int) -> str:
    found = different(trials, space)
    least = best(found)
    done = f"{len(found)} of {min(most, space.size)}"
    return done if least is None else f"{done}, best {_duration(least.value)} at {_at(space, least.point)}"


def _at(space: Space, point: Mapping[str, int]) -> str:
    return ", ".join(f"{each.name} = {point[each.name]}" for each in space.dimensions)


def _schedule_text(problem: Problem, least: Found) -> str:
    function, schedule = schedule_at(problem, least.point)
    chosen = problem.selected(function)
    return print_schedule(chosen, function) if isinstance(chosen, Schedule) else block(problem, function, schedule)


def _show(console: Console, problem: Problem, space: Space, found: Sequence[Over], least: Found, text: str) -> None:
    objective = "time" if problem.objective == "time" else "bound"
    at = ", ".join(f"{name} = {size}" for name, size in problem.sizes.items())
    console.say(f"{problem.function} for {problem.target}{' at ' if at else ''}{at}: {objective}, {OBJECTIVES[objective]}")
    first = default(found, space)
    if first is not None:
        value = first.outcome.value
        said = f"{first.outcome.code} {first.outcome.reason}".strip() if value is None else _duration(value)
        console.say(f"  {'as it is:' if space.is_written else 'first:   '}  {said}, {_at(space, space.default)}")
    console.say(f"  best:      {_duration(least.value)}, {_at(space, least.point)}")
    for each in space.dimensions:
        if each.labels:
            console.say(f"             {each.name}: {each.label(least.point[each.name])}")
    refused = sum(each.outcome.state == REFUSED for each in found)
    failed = sum(each.outcome.state == FAILED for each in found)
    console.say(f"  {len(found)} of {space.size} points tried; {refused} refused, {failed} failed")
    for reason, count in _reasons(found)[:SHOWN]:
        console.say(f"    {count} times: {reason}")
    console.say("")
    console.say(text.rstrip())


def _write_back(console: Console, problem: Problem, least: Found, file: Path | None, output: Path | None) -> None:
    """Writes the text with the best schedule, beside the file that it replaces and then in its place."""
    if file is None and output is None:
        return
    data = text_with(problem, least.point).encode()
    if output is not None:
        write_whole(output, lambda to: to.write(data))
    if file is not None:
        rewrite(file, data)
    for path in filter(None, (output, file)):
        console.say(f"written: {path}")


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"
