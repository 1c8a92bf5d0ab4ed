"""Which schedule of a function a target gets."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

from texpr.ir.program import Function, Schedule
from texpr.isa.target import Target
from texpr.support.diagnostic import Note, error

AUTO: Final = "auto"
NONE: Final = "none"
"""What may be asked for in place of a name: the schedule that fits best, and one that the compiler finds where the file has
none; no schedule."""

Selected: TypeAlias = Schedule | Literal["auto"] | None
"""A schedule, `AUTO` for one that the compiler is to find, or None for no schedule at all."""


def select_schedule(function: Function, wanted: Schedule | str, target: Target) -> Selected:
    """The schedule of `function` that is `wanted` for `target`, `AUTO` where the compiler is to find one.

    `wanted`: a schedule, the name of one, `none`, or `auto`: of those for this very target, else those for its family, else
    those for any target, the only one; of several the one without a name; `AUTO` where there is none. Raises TexprError for a
    name that is unknown (E0860), for a schedule of another target (E0861) or function (E0863), and where several fit (E0862).
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
    """The schedule of `function` that is called `name`. Raises TexprError E0860, which lists those there are."""
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
