"""Conditions of `if` and `select` → formulas over loop indices, sizes and integer `let`s."""

from __future__ import annotations

from texpr.affine.expr import Expr, expr
from texpr.ir.types import widens
from texpr.ir.value import Cast, Index, Literal, Op, Ref, Value
from texpr.presburger.formula import FALSE, TRUE, Formula, compare, conj, disj
from texpr.support.record import Record

_COMPARISONS = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
"""Each comparison and its negation."""


class Condition(Record):
    """A formula that holds whenever the condition does; `exact` if the converse is true as well."""

    formula: Formula
    exact: bool


def condition(value: Value, *, holds: bool = True) -> Condition:
    """What is known where `value` is true (or false, with `holds=False`). Data conditions say nothing: TRUE, inexact."""
    match value:
        case Literal():
            return Condition(TRUE if bool(value.value) == holds else FALSE, True)
        case Op(name="not", args=(arg,)):
            return condition(arg, holds=not holds)
        case Op(name="and" | "or", args=args):
            parts = [condition(a, holds=holds) for a in args]
            if (value.name == "and") == holds:
                return Condition(conj(p.formula for p in parts), all(p.exact for p in parts))
            return Condition(disj(p.formula for p in parts), all(p.exact for p in parts))
        case Op(name=name, args=(left, right)) if name in _COMPARISONS:
            a, b = as_index(left), as_index(right)
            if a is None or b is None:
                return Condition(TRUE, False)
            return Condition(compare(name if holds else _COMPARISONS[name], a, b), True)
        case _:
            return Condition(TRUE, False)


def as_index(value: Value) -> Expr | None:
    """The integer expression that a value is, if it is one; an integer `let` is its symbol."""
    match value:
        case Index():
            return value.expr
        case Literal() if value.dtype.is_integer:
            return expr(int(value.value))
        case Ref() if value.dtype.is_integer:
            return expr(value.sym)
        case Cast() if value.dtype.is_integer:
            inner = as_index(value.arg)
            return inner if inner is not None and widens(value.arg.dtype, value.dtype) else None
        case _:
            return None
