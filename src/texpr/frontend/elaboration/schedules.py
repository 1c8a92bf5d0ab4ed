"""Schedules: their function, their name, and their target."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from texpr.frontend import tree
from texpr.frontend.elaboration.body.directives import directive
from texpr.frontend.elaboration.context import Context, File
from texpr.frontend.elaboration.scope import did_you_mean
from texpr.ir.program import Directive, Schedule
from texpr.ir.program.selection import AUTO, NONE
from texpr.isa.registry import TARGETS
from texpr.support.diagnostic import Edit, Note, Proposal, TexprError, error
from texpr.support.span import Span

MACHINES = tuple(dict.fromkeys((*(target.family for target in TARGETS.values()), *TARGETS)))
"""The words that may follow `for`: families of targets, then targets."""


def gather_schedules(file: File, items: Sequence[tree.Item]) -> None:
    """Adds the schedules to each function of a file, in `file.schedules`; errors in their heads are recorded in `file`."""
    names = tuple(dict.fromkeys(item.name.name for item in items if isinstance(item, tree.Fn)))
    seen: dict[tuple[str, str | None, str | None], Span] = {}
    for item in items:
        if not isinstance(item, tree.Schedule):
            continue
        try:
            _check_head(item, names)
            target = item.target.name if item.target is not None and item.name is None else None
            key = (item.function.name, item.name, target)
            if key in seen:
                note = Note("it is first defined here", seen[key])
                help = "give it a name of its own" if item.name is not None else "give one of them a name"
                raise error("E0215", item.function.span, f"{_called(item)} is defined twice", note, help=help)
            seen[key] = item.function.span
            file.schedules.setdefault(item.function.name, []).append(item)
        except TexprError as raised:
            file.diagnostics += raised.diagnostics


def make_schedules(ctx: Context, name: str) -> tuple[Schedule, ...]:
    """The schedules of the function `name`; `ctx` has its sizes and consts only."""
    return tuple(_schedule(ctx, item) for item in ctx.file.schedules.get(name, ()))


def _schedule(ctx: Context, item: tree.Schedule) -> Schedule:
    directives: list[Directive] = []
    for written in item.directives:
        try:
            directives.append(directive(ctx, written))
        except TexprError as raised:
            ctx.making.keep(raised)
    target = item.target.name if item.target is not None else None
    return Schedule(item.function.name, item.name, target, tuple(directives), item.span)


def _called(item: tree.Schedule) -> str:
    name = f"the schedule `{item.name}`" if item.name is not None else "a schedule without a name"
    return f"{name} of `{item.function.name}`" + (f" for {item.target.name}" if item.target and item.name is None else "")


def _check_head(item: tree.Schedule, functions: Sequence[str]) -> None:
    function, target = item.function, item.target
    if function.name not in functions:
        help = did_you_mean(function.name, list(functions)) or f"the file has: {', '.join(functions) or 'no functions'}"
        raise error("E0214", function.span, f"a schedule for `{function.name}`, which is no function of this file", help=help)
    if item.name in (AUTO, NONE):
        help = f"`--schedule {item.name}` means something else; choose another name"
        raise error("E0210", item.span, f"a schedule cannot be called `{item.name}`", help=help)
    if target is not None and target.name not in MACHINES:
        near = get_close_matches(target.name, MACHINES, n=1)
        help = Proposal(f"did you mean `{near[0]}`?", Edit(near[0])) if near else f"there are: {', '.join(MACHINES)}"
        raise error("E0216", target.span, f"there is no target `{target.name}`", help=help)
