"""Factors that lead from terms for one maximum to those for another: what exponentials of the maximum suggest.

    exp(s[j] * scale - m)      exp((old - new))         exp2(fma(s[j], w, -(m * w)))      exp2((old - new) * w)

They are read off exponents, which are linear in the maximum. Nobody believes them: that one is right is decided where it is
used (`texpr.ir.value.exponentials`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.rows.keyed import Row
from texpr.ir.value import Buffer, Load, Op, Ref, Value, walk
from texpr.support.record import Record

OLD, NEW = Sym("⟨old⟩"), Sym("⟨new⟩")


def factors(row: Row) -> Iterator[Value]:
    """Factors that exponentials of the maximum suggest, from OLD to NEW: of one, or of all that a statement has."""
    if row.top is None or row.at is None:
        return
    for turn in row.turns[row.at + 1 :]:
        for stmt in ir.walk((turn.stmt,)):
            every = [*_factors(stmt, row.top)]
            yield from every
            if len(every) > 1:
                yield reduce(lambda one, other: Op("mul", (one, other), other.dtype), every)


def _factors(stmt: ir.Stmt, top: Buffer) -> Iterator[Value]:
    for node in (node for value in ir.values(stmt) for node in walk(value)):
        found = _slope(node.args[0], top) if isinstance(node, Op) and node.name in ("exp", "exp2") else None
        if isinstance(node, Op) and found is not None:
            first, second = (Ref(sym, node.dtype) for sym in ((OLD, NEW) if found.sign < 0 else (NEW, OLD)))
            change: Value = Op("sub", (first, second), node.dtype)
            yield Op(node.name, (_times(change, found.factor),), node.dtype)


class _Slope(Record):
    """The coefficient of the maximum: 1 or −1, times a value if there is one."""

    sign: int
    factor: Value | None = None


def _slope(value: Value, top: Buffer) -> _Slope | None:
    """The coefficient of the maximum in a value, if that is linear in it, and mentions it once."""
    match value:
        case Load() if value.buffer is top:
            return _Slope(1)
        case Op("neg", (arg,)):
            return _negative(_slope(arg, top))
        case Op("add", (first, second)):
            return _slope(first, top) or _slope(second, top)
        case Op("sub", (first, second)):
            return _slope(first, top) or _negative(_slope(second, top))
        case Op("fma", (first, second, third)):
            return _slope(Op("mul", (first, second), value.dtype), top) or _slope(third, top)
        case Op("mul", (first, second)):
            left, right = _slope(first, top), _slope(second, top)
            found, other = (left, second) if left is not None else (right, first)
            return None if found is None else _Slope(found.sign, _times(other, found.factor))
        case _:
            return None


def _negative(found: _Slope | None) -> _Slope | None:
    return None if found is None else _Slope(-found.sign, found.factor)


def _times(value: Value, factor: Value | None) -> Value:
    return value if factor is None else Op("mul", (value, factor), value.dtype)
