"""Pragmas and the directives of schedules in program form: names with arguments, uninterpreted.

In an argument a single name is a word, unless it is a size or const of the function: then it is that, as in an expression. A
string is always a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from texpr.affine.expr import Expr
from texpr.frontend import tree
from texpr.frontend.elaboration.context import Context
from texpr.frontend.elaboration.expressions import plain_index
from texpr.frontend.tree import Binary, Call, Group, Number, Text, Unary, Word
from texpr.ir import program as ir
from texpr.support.diagnostic import error


def pragmas(written: Sequence[tree.Directive]) -> tuple[ir.Directive, ...]:
    """The pragmas of a loop or function, with constant arguments."""
    found: list[ir.Directive] = []
    for pragma in written:
        args = tuple(ir.Argument(_plain(a.value), a.key, a.span) for a in pragma.args)
        found.append(ir.Directive(pragma.name.name, args, (), pragma.span))
    return tuple(found)


def _plain(value: tree.DirectiveValue) -> str | int:
    match value:
        case Word():
            return value.text
        case Text():
            return value.value
        case Number() if isinstance(value.value, int):
            return value.value
        case Number() | Group() | Unary() | Binary() | Call():
            help = "write it in a `schedule` block"
            raise error("E0327", value.span, "a pragma takes names, strings and integers", help=help)
        case _:
            assert_never(value)


def directive(ctx: Context, written: tree.Directive) -> ir.Directive:
    """A directive of a schedule; `ctx` has the sizes and consts of the function only."""
    results = tuple(result.name for result in written.results)
    return ir.Directive(written.name.name, _arguments(ctx, written.args), results, written.span)


def _arguments(ctx: Context, args: Sequence[tree.Argument]) -> tuple[ir.Argument, ...]:
    return tuple(ir.Argument(_value(ctx, a.value), a.key, a.span) for a in args)


def _value(ctx: Context, value: tree.DirectiveValue) -> ir.ArgumentValue:
    match value:
        case Word("inf" | "nan"):
            return float(value.text)
        case Word() if ctx.scope.find(value.text) is not None:
            return _index(ctx, tree.Name(value.text, value.span))
        case Word():
            return value.text
        case Text() | Number():
            return value.value
        case Group():
            return ir.Group(_arguments(ctx, value.args))
        case Unary() | Binary() | Call():
            return _index(ctx, value)
        case _:
            assert_never(value)


def _index(ctx: Context, e: tree.Exp) -> Expr | int:
    _refuse_others(ctx, e)
    found = plain_index(ctx, e, "an argument")
    return found.constant if found.is_constant else found


def _refuse_others(ctx: Context, e: tree.Exp) -> None:
    """Refuses an expression with anything but sizes and consts: loops and memory are named by words, and have no value here."""
    known = ctx.scope.visible()
    for name in tree.names_in(e):
        if name.name not in known:
            help = f"these may stand here: {', '.join(known)}" if known else "the function has no sizes"
            raise error("E0213", name.span, f"`{name.name}` is not a size or const of the function", help=help)
    stack: list[tree.Exp | tree.Slice] = [e]
    while stack:
        part = stack.pop()
        if isinstance(part, Call) and part.name.name not in ("min", "max"):
            raise error("E0213", part.span, f"`{part.name.name}` cannot be called here", help="`min` and `max` can")
        stack += tree.parts(part)
