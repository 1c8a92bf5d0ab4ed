"""Scalar values: what a bind or a store computes. Programs and kernels share them.

    value = Literal number | Load buffer[index] | Index expr | Ref name | Op name values | Cast value

Index arithmetic (`affine.Expr`) is exact integer arithmetic; `Index` converts it to a typed value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import mul
from typing import TypeAlias

from texpr.affine.expr import ONE, ZERO, Expr, Sym
from texpr.ir.value.types import BOOL, DType
from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span


class Buffer(Record, eq=False):
    """Memory: a parameter, a result, or a local (`new`). Compared by identity; names are unique in a function.

    `strides` in elements, `None` for dense row-major; `align` in bytes, `None` for the natural alignment of the element.
    A scalar parameter is a rank-0 `input`.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    role: str  # "input", "inout", "result" (a local that is returned) or "local"
    strides: tuple[Expr, ...] | None = None
    align: int | None = None
    span: Span = NOWHERE

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def room(self) -> Expr:
        """The elements that there is memory for; with strides, each row of which lies within its stride (`pitched`)."""
        if self.strides is not None and self.shape:
            return self.shape[0] * self.strides[0]
        return reduce(mul, self.shape, ONE)

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


PITCHES = tuple(1 << n for n in range(8))
"""Of so many elements rows may be whole multiples, where they are apart."""


def pitched(shape: Sequence[Expr], count: int) -> tuple[Expr, ...]:
    """The strides of an array whose rows begin at multiples of `count` elements."""
    strides = [ONE]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * (size if len(strides) > 1 else (size + (count - 1)) // count * count))
    return tuple(reversed(strides))


class Literal(Record):
    """A number of type `dtype`; inf and nan for floats. Booleans are 0 and 1. `value` is exactly as written (int) or an f64."""

    value: int | float
    dtype: DType


class Load(Record):
    """The element of `buffer` at `index`.

    `data` binds each data-dependent symbol of `index` to an integer value, in order; a later one may use an earlier one. They
    are evaluated only when the element is (so `select` guards them too).
    """

    buffer: Buffer
    index: tuple[Expr, ...]
    data: tuple[tuple[Sym, Value], ...] = ()
    span: Span = NOWHERE

    @property
    def dtype(self) -> DType:
        """The type of the element."""
        return self.buffer.dtype

    @property
    def offset(self) -> Expr:
        """The offset of the element from the start of its buffer, in elements."""
        total, buffer = ZERO, self.buffer
        for at, index in enumerate(self.index):
            total = total * buffer.shape[at] + index if buffer.strides is None else total + index * buffer.strides[at]
        return total


class Index(Record):
    """An index expression used as a value; its range is proved to fit `dtype`."""

    expr: Expr
    dtype: DType
    span: Span = NOWHERE


class Ref(Record):
    """The value of a `let` (or, in a kernel, of a register variable)."""

    sym: Sym
    dtype: DType


class Op(Record):
    """An operation of `texpr.ir.value.operators.OPS` on values. `select` evaluates only the branch taken; the rest are strict.

    Comparisons and `and or not` give bool. A comparison of two `Index` values is affine.
    """

    name: str
    args: tuple[Value, ...]
    dtype: DType
    span: Span = NOWHERE


class Cast(Record):
    """Conversion to `dtype`.

    To float: to nearest even (f8e4m3 overflows to nan, f8e5m2 to infinity, as ml_dtypes does). Float to integer: toward zero,
    saturating, nan gives 0. Integer to integer wraps. Anything to bool is `!= 0`.
    """

    arg: Value
    dtype: DType


Value: TypeAlias = Literal | Load | Index | Ref | Op | Cast


def operands(value: Value) -> tuple[Value, ...]:
    """The values directly below `value`, those in a load's indices included."""
    match value:
        case Literal() | Index() | Ref():
            return ()
        case Load():
            return tuple(meaning for _, meaning in value.data)
        case Op():
            return value.args
        case Cast():
            return (value.arg,)


def walk(value: Value) -> Iterator[Value]:
    """`value` and every value below it, outermost first."""
    yield value
    for operand in operands(value):
        yield from walk(operand)


def conjuncts(value: Value) -> Iterator[Value]:
    """The operands of a conjunction; the inverse of `conjunction`."""
    match value:
        case Op("and", (left, right)):
            yield from conjuncts(left)
            yield from conjuncts(right)
        case _:
            yield value


def conjunction(conditions: Sequence[Value]) -> Value | None:
    """The conjunction of `conditions`, None if there are none."""
    if not conditions:
        return None
    total = conditions[0]
    for condition in conditions[1:]:
        total = Op("and", (total, condition), BOOL)
    return total
