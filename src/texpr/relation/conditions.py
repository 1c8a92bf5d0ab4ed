"""Conditions of `if` and `select` → formulas over loop indices, sizes and integer `let`s.

    t + k < n  where t is an i32 `let`    ⇒    (t + k + 2³¹) mod 2³² − 2³¹ < n

Integers of a type wrap: their arithmetic is modelled exactly, by a remainder, or without one where ranges show that nothing
wraps.
"""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.ranges import Interval, interval
from texpr.ir.value import Cast, Index, Literal, Op, Ref, Value
from texpr.ir.value.types import DType, Kind, widens
from texpr.presburger.formula import FALSE, TRUE, Formula, compare, conj, disj
from texpr.support.record import Record

_NO_RANGES: Mapping[Sym, Interval] = {}
_COMPARISONS = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
"""Each comparison and its negation."""


class Condition(Record):
    """A formula that holds whenever the condition does; `exact` if the converse is true as well."""

    formula: Formula
    exact: bool


def condition(value: Value, *, holds: bool = True, ranges: Mapping[Sym, Interval] = _NO_RANGES) -> Condition:
    """The formula that holds where `value` is true (or false, with `holds=False`). A condition on data gives TRUE, inexact.

    `ranges`: the ranges of symbols.
    """
    match value:
        case Literal():
            return Condition(TRUE if bool(value.value) == holds else FALSE, True)
        case Op(name="not", args=(arg,)):
            return condition(arg, holds=not holds, ranges=ranges)
        case Op(name="and" | "or", args=args):
            parts = [condition(a, holds=holds, ranges=ranges) for a in args]
            if (value.name == "and") == holds:
                return Condition(conj(p.formula for p in parts), all(p.exact for p in parts))
            return Condition(disj(p.formula for p in parts), all(p.exact for p in parts))
        case Op(name=name, args=(left, right)) if name in _COMPARISONS:
            a, b = as_index(left, ranges), as_index(right, ranges)
            if a is None or b is None:
                return Condition(TRUE, False)
            return Condition(compare(name if holds else _COMPARISONS[name], a, b), True)
        case _:
            return Condition(TRUE, False)


def as_index(value: Value, ranges: Mapping[Sym, Interval] = _NO_RANGES) -> Expr | None:
    """A value as an integer expression, if it has one; an integer `let` is its symbol."""
    match value:
        case Index():
            return value.expr
        case Literal() if value.dtype.is_integer:
            return expr(int(value.value))
        case Ref() if value.dtype.is_integer:
            return expr(value.sym)
        case Cast() if value.dtype.is_integer:
            inner = as_index(value.arg, ranges)
            return inner if inner is not None and widens(value.arg.dtype, value.dtype) else None
        case Op(name="add" | "sub" | "mul", args=(left, right)) if value.dtype.is_integer:
            a, b = as_index(left, ranges), as_index(right, ranges)
            if a is None or b is None or (value.name == "mul" and not (a.is_constant or b.is_constant)):
                return None
            exact = a + b if value.name == "add" else a - b if value.name == "sub" else a * b
            return _wrapped(exact, value.dtype, ranges)
        case _:
            return None


def _wrapped(value: Expr, dtype: DType, ranges: Mapping[Sym, Interval]) -> Expr:
    """A number reduced by the wrap-around of `dtype`."""
    least = -(2 ** (dtype.bits - 1)) if dtype.kind is Kind.INT else 0
    low, high = interval(value, ranges)
    if least <= low and high < least + 2**dtype.bits:
        return value
    return (value - least) % 2**dtype.bits + least
