"""Sizes and consts of a function, fixed before anything else is done with it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import SupportsIndex

from texpr.affine.expr import Sym
from texpr.ir.program import Function
from texpr.ir.program.promises import broken_where
from texpr.ir.program.rewrite import specialize
from texpr.support.diagnostic import Diagnostic, TexprError, error


def fix(function: Function, sizes: Mapping[str, int] | None = None) -> tuple[Function, dict[Sym, int]]:
    """`function` with the named sizes and consts fixed; other consts take their defaults."""
    known = {s.name: s for s in (*function.sizes, *(s for s, _ in function.consts))}
    given: dict[str, int] = {}
    for name, value in (sizes or {}).items():
        if name not in known:
            names = ", ".join(known) or "none"
            help = f"its sizes are: {names}; a const is given to `load`, as in `load(file, {{'{name}': 2}})`"
            raise error("E0706", function.span, f"`{function.name}` has no size `{name}`", help=help)
        given[name] = _integer(function, known[name], value)
    for const, default in function.consts:
        if const.name not in given:
            if default is None:
                reason = f"const `{const.name}` of `{function.name}` has no value"
                raise error("E0708", function.span, reason, help=f"give one: --size {const.name}=1")
            given[const.name] = default
    fixed = {known[name]: value for name, value in given.items()}
    stated = (fact for fact in function.where if fact.left.syms() | fact.right.syms() <= fixed.keys())
    refuse(tuple(broken for fact in stated if (broken := broken_where(fact, fixed)) is not None))
    try:
        return specialize(function, fixed), fixed
    except ZeroDivisionError:
        message = f"`{function.name}` divides by zero in an index or size, at {listed(fixed)}"
        raise error("E0724", function.span, message) from None


def own(function: Function, sizes: Mapping[str, int] | None) -> dict[str, int]:
    """The entries of `sizes` that `function` has."""
    names = {s.name for s in function.sizes} | {s.name for s, _ in function.consts}
    return {name: value for name, value in (sizes or {}).items() if name in names}


def listed(fixed: Mapping[Sym, int]) -> str:
    """Sizes and their values, as text."""
    return ", ".join(f"{sym.name} = {value}" for sym, value in fixed.items())


def _integer(function: Function, size: Sym, value: object) -> int:
    """`value` as a value of `size`: it fits 64 bits, and only a const may be negative. Raises TexprError E0707."""
    named = f"size `{size}` of `{function.name}`"
    if not isinstance(value, SupportsIndex):
        raise error("E0707", function.span, f"{named} must be an integer, not {type(value).__name__}")
    number = operator.index(value)
    if number < 0 and size in function.sizes:
        raise error("E0707", function.span, f"{named} must not be negative, it is {number}")
    if not -(2**63) <= number < 2**63:
        raise error("E0707", function.span, f"{named} must fit i64, it is {number}")
    return number


def refuse(found: tuple[Diagnostic, ...]) -> None:
    """Raises TexprError if there are errors."""
    if found:
        raise TexprError(found)
