"""Whether the schedules and pragmas of a function can be applied, for `texpr check`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from texpr.delivery import parts
from texpr.driver import fix_schedule
from texpr.ir.program import Function, Schedule
from texpr.ir.program.selection import AUTO
from texpr.isa.registry import resolve
from texpr.isa.target import Target
from texpr.schedule.apply import followed
from texpr.schedule.proposals import tried
from texpr.sizes import fix, own
from texpr.support.diagnostic import CompilerBug, Diagnostic, TexprError

MACHINES: Mapping[str | None, tuple[str, ...]] = {"cuda": ("sm_90a",), "cpu": ("cpu",), None: ("sm_90a", "cpu")}
"""The targets on which a schedule for a family, or for any target, is tried: it has to work on one of these."""

SOME_SIZE = 4096
"""A size at which a schedule that works for some sizes usually works."""

CERTAIN = ("E0901", "E0902", "E0903", "E0904", "E0906", "E0907", "E0908", "E0909")
"""Refusals that hold at all sizes. The others may need a constant extent, which a build can fix."""


def refusals(function: Function, sizes: Mapping[str, int]) -> Iterator[Diagnostic]:
    """The refusals of the schedules and pragmas of a legal function that hold for all sizes not in `sizes`. Consts have their
    defaults."""
    if any(value is None for _, value in function.consts):
        return
    for schedule in function.schedules or (None,):
        refused = _refused(function, schedule, own(function, sizes))
        if refused is None:
            continue
        open_sizes = {sym.name for sym in function.sizes} - sizes.keys()
        doubtful = [found for found in refused.diagnostics if found.code not in CERTAIN]
        if doubtful and open_sizes and not _refused_so(function, schedule, sizes, open_sizes, doubtful):
            continue
        yield from refused.diagnostics


def _refused(function: Function, schedule: Schedule | None, sizes: Mapping[str, int]) -> TexprError | None:
    """Why a schedule cannot be applied on any of its targets; None where it can."""
    target = None if schedule is None else schedule.target
    first: TexprError | None = None
    for name in MACHINES.get(target, (str(target),)):

        def follow(function: Function, schedule: Schedule | None, name: str = name) -> None:
            fixed, values = fix(function, sizes)
            followed(fixed, schedule and fix_schedule(schedule, values), resolve(name))

        try:
            follow(function, schedule)
            return None
        except CompilerBug:
            raise
        except TexprError as problem:
            first = first or tried(problem, function, schedule, follow)
    return first


def _refused_so(
    function: Function,
    schedule: Schedule | None,
    sizes: Mapping[str, int],
    open_sizes: Collection[str],
    doubtful: Sequence[Diagnostic],
) -> bool:
    """Whether a refusal that may be due to open sizes is the same when each of them is a large power of two."""
    try:
        refused = _refused(function, schedule, {**own(function, sizes), **dict.fromkeys(open_sizes, SOME_SIZE)})
    except TexprError:  # invalid sizes
        return False
    said = {(found.code, found.message) for found in refused.diagnostics} if refused is not None else set[tuple[str, str]]()
    return all((found.code, found.message) in said for found in doubtful)


def unbuildable(function: Function, sizes: Mapping[str, int], targets: Sequence[str]) -> Iterator[Diagnostic]:
    """The refusals of `build` for a legal function on any of `targets`, by any schedule for it."""
    said: set[tuple[str, str]] = set()
    for machine in map(resolve, targets):
        for schedule in _suiting(function, machine):
            try:
                parts((function,), (machine.name,), sizes, schedule)
            except TexprError as problem:
                for found in problem.diagnostics:
                    if (key := (f"{found.span}", found.message)) not in said:
                        said.add(key)
                        yield found


def _suiting(function: Function, machine: Target) -> Sequence[Schedule | str]:
    """The schedules that a build for `machine` may use; if there are none, the automatic one."""
    return [s for s in function.schedules if s.target in (machine.name, machine.family, None)] or [AUTO]
