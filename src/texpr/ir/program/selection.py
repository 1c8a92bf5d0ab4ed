"""Selection of a function's schedule for a target."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

from texpr.ir.program import Function, Schedule
from texpr.isa.target import Target
from texpr.support.diagnostic import Note, error

AUTO: Final = "auto"
NONE: Final = "none"
"""Reserved names: the best schedule of the file, or one by the compiler if the file has none; no schedule."""

Selected: TypeAlias = Schedule | Literal["auto"] | None
"""A schedule, `AUTO` if the compiler is to find one, or None for no schedule."""


def select_schedule(function: Function, wanted: Schedule | str, target: Target) -> Selected:
    """The schedule of `function` that `wanted` selects for `target`, or `AUTO` if the compiler is to find one.

    `wanted`: a schedule, its name, `none`, or `auto`. `auto` selects among those for this target, else those for its family,
    else those for any target: the only one, or the one without a name; without any, `AUTO`. Raises TexprError for an unknown
    name (E0860), for a schedule of another target (E0861) or function (E0863), and for several that fit (E0862).
    """
    if wanted == NONE:
        return None
    if wanted == AUTO:
        return _fitting(function, target) or AUTO
    schedule = find_schedule(function, wanted) if isinstance(wanted, str) else wanted
    if schedule.function != function.name:
        raise error("E0863", schedule.span, f"{_called(schedule)} is for `{schedule.function}`, not for `{function.name}`")
    if schedule.target not in (target.name, target.family, None):
        help = f"leave the choice open: --schedule {AUTO}"
        raise error("E0861", schedule.span, f"{_called(schedule)} is for {schedule.target}, not for {target.name}", help=help)
    return schedule


def find_schedule(function: Function, name: str) -> Schedule:
    """The schedule of `function` with that name. Raises TexprError E0860, which lists the existing ones."""
    names = [schedule.name for schedule in function.schedules if schedule.name is not None]
    for schedule in function.schedules:
        if schedule.name == name:
            return schedule
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join((*names, AUTO, NONE))}"
    raise error("E0860", function.span, f"`{function.name}` has no schedule `{name}`", help=hint)


def _fitting(function: Function, target: Target) -> Schedule | None:
    for machine in (target.name, target.family, None):
        found = [schedule for schedule in function.schedules if schedule.target == machine]
        unnamed = [schedule for schedule in found if schedule.name is None]
        if len(found) > 1 and not unnamed:
            notes = (Note(f"{_called(schedule)} is here", schedule.span) for schedule in found)
            help = " or ".join(f"--schedule {schedule.name}" for schedule in found)
            raise error("E0862", function.span, f"several schedules of `{function.name}` fit {target.name}", *notes, help=help)
        if found:
            return (unnamed or found)[0]
    return None


def _called(schedule: Schedule) -> str:
    return f"schedule `{schedule.name}`" if schedule.name is not None else "the schedule without a name"
