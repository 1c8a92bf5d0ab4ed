"""Structural equality of nodes that compare by identity."""

from __future__ import annotations

from math import isnan
from typing import cast

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Buffer, Literal, Value
from texpr.ir.value.types import DType
from texpr.support.record import is_record, names
from texpr.support.span import Span


def same(a: object, b: object) -> bool:
    """Whether two forms (plans, kernels, programs, statements, values) are equal in structure; spans are ignored.

    Buffers must correspond one to one: two uses of one buffer in one form are two uses of one buffer in the other.
    """
    return _Comparison().same(a, b)


def same_constant(a: Value, b: Value) -> bool:
    """Whether two values are equal in structure, or the same float, bit by bit, or both nan."""
    if same(a, b) or not (isinstance(a, Literal) and isinstance(b, Literal)) or a.dtype != b.dtype or not a.dtype.is_float:
        return same(a, b)
    x, y = float(a.value), float(b.value)
    return x.hex() == y.hex() or (x != x and y != y)


_PLAIN = (Sym, Expr, DType, str, int)
"""Types that are compared by `==`."""


class _Comparison:
    def __init__(self) -> None:
        self._forward: dict[Buffer, Buffer] = {}
        self._backward: dict[Buffer, Buffer] = {}

    def same(self, a: object, b: object) -> bool:
        if type(a) is not type(b):
            return False
        if isinstance(a, _PLAIN):
            return a == b
        if isinstance(a, tuple):
            left, right = cast("tuple[object, ...]", a), cast("tuple[object, ...]", b)
            return len(left) == len(right) and all(map(self.same, left, right))
        if isinstance(a, float) and isinstance(b, float):
            return a.hex() == b.hex() or (isnan(a) and isnan(b))  # -0.0 differs from 0.0, and nan equals nan
        if isinstance(a, Buffer) and isinstance(b, Buffer):
            return self._same_buffer(a, b)
        if isinstance(a, Span):
            return True
        if is_record(a):
            return self._same_fields(a, b)
        return a == b

    def _same_buffer(self, a: Buffer, b: Buffer) -> bool:
        if a in self._forward or b in self._backward:
            return self._forward.get(a) is b and self._backward.get(b) is a
        self._forward[a], self._backward[b] = b, a
        return self._same_fields(a, b)

    def _same_fields(self, a: object, b: object) -> bool:
        return all(self.same(getattr(a, name), getattr(b, name)) for name in names(a))
