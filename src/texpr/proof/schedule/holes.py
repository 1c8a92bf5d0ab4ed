"""Computing holes: iterations beyond the written ones, whose updates change nothing since all their operands are fills.

The sign of a zero is an exception: x + 0 is x, unless x is −0. Directives that let holes compute take care of that.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from math import isinf, isnan
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.updates import neutral
from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Value
from texpr.ir.value.types import F8E4M3, F8E8M0, DType
from texpr.proof.read.actions import Action, Program
from texpr.proof.schedule.accesses import Home

Number: TypeAlias = int | float

WHOLE = 8
"""Integers up to this one are exact in every floating-point type."""

MADE = {"mul": operator.mul, "add": operator.add, "sub": operator.sub, "neg": operator.neg}
"""Operations that are computed of fills."""


def fill(value: Literal) -> Sym:
    """The element of a hole: a symbol of its own, which is never written."""
    return Sym(f"fill {value.value}")


def is_fill(stored: Home | None) -> bool:
    """Whether the memory is that of fills."""
    return isinstance(stored, Sym) and stored.name.startswith("fill ")


def fills(laid: Program) -> Mapping[Buffer, Literal]:
    """The fill of each memory, if it is a constant; copies of such memory have the same fill."""
    found: dict[Buffer, Literal] = {}
    for action in laid.actions:
        if not action.stmt.instance and isinstance(action.value, Literal) and isinstance(action.target, Load):
            known = found.setdefault(action.target.buffer, action.value)
            if known.value != action.value.value:
                return {}
    return {**found, **_copied(laid, found)}


def _copied(laid: Program, known: Mapping[Buffer, Literal]) -> Mapping[Buffer, Literal]:
    """The fills of locals that only hold copies of memory with `known` fills."""
    sources: dict[Buffer, set[Buffer | None]] = {}
    for action in laid.actions if known else ():
        if isinstance(action.target, Load):
            other = action.stmt.instance or action.update is not None
            source = action.value.buffer if isinstance(action.value, Load) and not other else None
            sources.setdefault(action.target.buffer, set()).add(source)
    found = dict(known)
    for buffer, some in sources.items():
        source = next(iter(some)) if len(some) == 1 else None
        if buffer.role == "local" and buffer not in known and source is not None and source in known:
            found[buffer] = known[source]
    return found


def changes_nothing(action: Action, known: Mapping[Buffer, Literal]) -> bool:
    """Whether an update whose operands are fills leaves its target unchanged."""
    if not isinstance(action.update, str) or not isinstance(action.stmt, ir.Bind) or len(action.stmt.targets) != 1:
        return False
    found = folded(action.arms[0], known)
    return found is not None and found == neutral(action.update, action.target.dtype)


def folded(value: Value, known: Mapping[Buffer, Literal]) -> Number | None:
    """The value computed from fills, if it is known."""
    match value:
        case Literal():
            return value.value
        case Load(buffer):
            return None if buffer not in known else _of_scale(known[buffer].value, buffer.dtype)
        case Cast(inner):
            return _exact(_exact(folded(inner, known), inner.dtype), value.dtype)
        case Op(name, args) if name in MADE:
            found = [_exact(folded(arg, known), arg.dtype) for arg in args]
            numbers = [each for each in found if each is not None]
            return _exact(MADE[name](*numbers), value.dtype) if len(numbers) == len(found) else None
        case Op("div" | "mod" as name, (arg, Literal(by))) if value.dtype.is_integer and by > 0:  # both round down
            one = _exact(folded(arg, known), arg.dtype)
            return None if one is None else _exact(one // by if name == "div" else one % by, value.dtype)
        case _:
            return None


def _of_scale(value: Number, dtype: DType) -> Number | None:
    """A number that an element has, but of scales another one than one, which may be nan."""
    return value if dtype != F8E8M0 or value == 1 else None


def _exact(value: Number | None, dtype: DType) -> Number | None:
    """A number, if it is exact in a type: neither rounded nor wrapped."""
    if value is None or isnan(value):
        return None
    low, high = (1, 1) if dtype == F8E8M0 else (-WHOLE, WHOLE) if dtype.is_float else dtype.limits
    endless = isinf(value) and dtype.is_float and dtype not in (F8E4M3, F8E8M0)
    return value if endless or (low <= value <= high and value == int(value)) else None
