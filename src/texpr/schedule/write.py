"""Schedules written out as text of the language."""

from __future__ import annotations

from texpr.affine.expr import Expr
from texpr.ir import program as ir


def schedule_text(schedule: ir.Schedule) -> str:
    """A `schedule` block."""
    name = f' "{schedule.name}"' if schedule.name is not None else ""
    target = f" for {schedule.target}" if schedule.target is not None else ""
    lines = [f"    {directive_text(d)}" for d in schedule.directives]
    return "\n".join((f"schedule {schedule.function}{name}{target} {{", *lines, "}"))


def directive_text(directive: ir.Directive) -> str:
    """`split(i, 128) -> (bi, ti)`."""
    text = f"{directive.name}({_arguments(directive.args, '=')})"
    if not directive.results:
        return text
    names = ", ".join(directive.results)
    return f"{text} -> {names}" if len(directive.results) == 1 else f"{text} -> ({names})"


def _arguments(args: tuple[ir.Argument, ...], separator: str) -> str:
    return ", ".join((f"{a.key}{separator}" if a.key is not None else "") + _value(a.value) for a in args)


def _value(value: ir.ArgumentValue) -> str:
    match value:
        case ir.Group(args):
            return f"({_arguments(args, ': ')})"
        case str() | int() | float() | Expr():
            return str(value)
