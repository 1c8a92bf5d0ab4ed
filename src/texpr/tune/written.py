"""The best schedule put into the text: consts get other defaults, a schedule that the planner found is written out."""

from __future__ import annotations

from texpr.ir.program import Function, Schedule
from texpr.ir.program.selection import AUTO
from texpr.ir.program.text import print_directive, print_schedule
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import replace
from texpr.tune.problem import Problem, compiled_at, consts_of, schedule_at
from texpr.tune.space import Point

NAME = "tuned"
"""The name of a schedule that the planner found."""


def text_with(problem: Problem, point: Point) -> str:
    """The text whose schedule is that of `point`. It is read, scheduled and proved again before it is given."""
    function, schedule = schedule_at(problem, point)
    text = problem.text
    if problem.selected(function) == AUTO:
        text = f"{text.rstrip()}\n\n{block(problem, function, schedule)}"
    else:
        for name, param in reversed(consts_of(problem.text, problem.file, problem.function)):
            if name in point:
                span = param.default.span if param.default is not None else None
                start, end = (span.start, span.end) if span is not None else (param.span.end, param.span.end)
                text = f"{text[:start]}{'' if span is not None else ' = '}{point[name]}{text[end:]}"
    _require_same(problem, text, schedule)
    return text


def block(problem: Problem, function: Function, schedule: Schedule | None) -> str:
    """The planner's schedule as a block of the text; one without directives leaves all loops as they are."""
    found = schedule or Schedule(function.name, None, None, ())
    return print_schedule(replace(found, name=NAME, target=problem.target), function)


def _require_same(problem: Problem, text: str, schedule: Schedule | None) -> None:
    again = replace(problem, text=text)
    _, found = schedule_at(again, {})
    wanted = schedule.directives if schedule is not None else ()
    if found is None or [*map(print_directive, found.directives)] != [*map(print_directive, wanted)]:
        raise CompilerBug("the schedule that was written is not read as the one that was found")
    compiled_at(again, {})
