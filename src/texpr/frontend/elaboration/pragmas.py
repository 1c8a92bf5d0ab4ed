"""Pragmas as directives of the program form: names with plain arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from texpr.frontend.tree import Directive as Pragma
from texpr.frontend.tree import DirectiveValue, Group, Number, Text, Word
from texpr.ir.program import Directive
from texpr.support.diagnostic import error


def directives(pragmas: Sequence[Pragma]) -> tuple[Directive, ...]:
    """The pragmas of a loop or function."""
    found: list[Directive] = []
    for pragma in pragmas:
        args = tuple(_plain(a.value) for a in pragma.args if a.key is None)
        keys = tuple((a.key, _plain(a.value)) for a in pragma.args if a.key is not None)
        found.append(Directive(pragma.name.name, args, keys, pragma.span))
    return tuple(found)


def _plain(value: DirectiveValue) -> str | int:
    match value:
        case Word():
            return value.text
        case Text():
            return value.value
        case Number() if isinstance(value.value, int):
            return value.value
        case Number() | Group():
            help = "write it in a `schedule` block"
            raise error("E0327", value.span, "a pragma takes names, strings and integers", help=help)
        case _:
            assert_never(value)
