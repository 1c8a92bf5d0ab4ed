"""Whether the schedules and pragmas of a function can be followed: what `texpr check` says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.driver import fix, fix_schedule, own
from texpr.ir.program import Function
from texpr.isa.registry import resolve
from texpr.schedule.apply import followed
from texpr.support.diagnostic import CompilerBug, Diagnostic, TexprError

MACHINES: Mapping[str | None, tuple[str, ...]] = {"cuda": ("sm_90a",), "cpu": ("cpu",), None: ("sm_90a", "cpu")}
"""Where a schedule for a family, or for any target, is tried: it has to suit one of these."""

CERTAIN = ("E0901", "E0902", "E0903", "E0904", "E0906", "E0907", "E0908", "E0909")
"""Refusals that stand at all sizes. The others may ask for an extent that is constant, which a build can fix."""


def refusals(function: Function, sizes: Mapping[str, int]) -> Iterator[Diagnostic]:
    """What the schedules and pragmas of a legal function are refused for, whatever sizes are not among `sizes`. Consts have
    their defaults."""
    if any(value is None for _, value in function.consts):
        return
    fixed, values = fix(function, own(function, sizes))
    for schedule in function.schedules or (None,):
        target = None if schedule is None else schedule.target
        refused: list[TexprError] = []
        for name in MACHINES.get(target, (str(target),)):
            try:
                followed(fixed, schedule and fix_schedule(schedule, values), resolve(name))
                break
            except CompilerBug:
                raise
            except TexprError as problem:
                refused.append(problem)
        else:
            yield from (found for found in refused[0].diagnostics if found.code in CERTAIN)
