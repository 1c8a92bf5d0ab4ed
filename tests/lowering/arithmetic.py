"""What operations of values are, for plans that are run by hand: of Python's own numbers, as wide as their types."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from texpr.ir.value.types import DType, Kind

Number = int | float


def _divide(a: Number, b: Number) -> Number:
    return (a // b if b else 0) if isinstance(a, int) else a / b


def wrapped(number: Number, dtype: DType) -> Number:
    """An integer as its type holds it: what does not fit wraps around."""
    if not dtype.is_integer:
        return number
    low = -(1 << dtype.bits - 1) if dtype.kind is Kind.INT else 0
    return (int(number) - low) % (1 << dtype.bits) + low


def _modulo(a: int, b: int) -> int:
    return a % b if b else 0


OPERATIONS: dict[str, Callable[..., Any]] = {
    "exp": math.exp, "isnan": math.isnan, "sqrt": math.sqrt, "rsqrt": lambda x: x**-0.5,
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs, "max": max, "min": min,
    "div": _divide, "mod": _modulo, "and": operator.and_, "or": operator.or_, "not": operator.not_,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
