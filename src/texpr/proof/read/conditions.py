"""Conditions and subscripts as formulas and index expressions, if they do not depend on data."""

from __future__ import annotations

from texpr.affine.expr import Expr, expr
from texpr.ir.value import Index, Literal, Op, Value
from texpr.presburger.formula import FALSE, TRUE, Formula, compare, conj, disj, negate

_SYMBOL = {"lt": "<", "ge": ">=", "le": "<=", "gt": ">", "eq": "==", "ne": "!="}


def test(value: Value) -> Formula | None:
    """A condition on indices as a formula, None if it depends on data."""
    match value:
        case Literal():
            return TRUE if value.value else FALSE
        case Op("and", (left, right)):
            parts = test(left), test(right)
            return None if parts[0] is None or parts[1] is None else conj((parts[0], parts[1]))
        case Op("or", (left, right)):
            parts = test(left), test(right)
            return None if parts[0] is None or parts[1] is None else disj((parts[0], parts[1]))
        case Op("not", (inner,)):
            found = test(inner)
            return None if found is None else negate(found)
        case Op(name, (left, right)) if name in _SYMBOL:
            a, b = index_of(left), index_of(right)
            return None if a is None or b is None else compare(_SYMBOL[name], a, b)
        case _:
            return None


def index_of(value: Value) -> Expr | None:
    """The index expression of a value, if it is one."""
    match value:
        case Index(e):
            return e
        case Literal(number) if isinstance(number, int) and value.dtype.is_integer:
            return expr(number)
        case _:
            return None
