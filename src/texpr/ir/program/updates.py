"""Updates: how a value is combined with an element, for binds, partial sums and their final combination alike."""

from __future__ import annotations

import math
from collections.abc import Sequence

from texpr.ir import program as ir
from texpr.ir.program import Update
from texpr.ir.program.rewrite import map_value
from texpr.ir.value import Buffer, Literal, Load, Op, Ref, Value
from texpr.ir.value.types import BOOL, DType, Kind
from texpr.support.record import Record

UPDATES = ("add", "sub", "mul", "max", "min", "and", "or")
"""The built-in updates."""

EXACTLY_ONCE_FREE = frozenset({"max", "min", "and", "or"})
"""Updates that are idempotent: combining a value twice changes nothing."""

SUMS = frozenset({"add", "sub"})
"""Updates that are sums: of products, a machine may fuse the two."""

FUSED = frozenset({"f32", "f64"})
"""Types for which machines may fuse a sum and a product."""

ATOMIC = frozenset({"add", "sub", "max", "min", "and", "or"})


def may_meet(update: Update, dtype: DType, asked: bool) -> bool:
    """Whether updates may be executed in any order: the result is the same, or the text allows it (`#atomic`)."""
    return isinstance(update, str) and update in ATOMIC and (dtype.is_integer or (dtype.is_float and asked))


def identity(update: Update, dtypes: Sequence[DType]) -> tuple[Value, ...]:
    """The neutral values of an update: 0 for a sum, −∞ or the least integer for a maximum, …

    In a tuple the first decides; the others are the greatest values of their types, so that in a tie any real value wins.
    """
    if not isinstance(update, str):
        return (update.identity,)
    first, *rest = dtypes
    return (_scalar_identity(update, first), *(Literal(_greatest(dtype), dtype) for dtype in rest))


def neutral(update: Update, dtype: DType) -> int | float | None:
    """The neutral value for one buffer, as a number: the fill of holes in memory that is reduced without a guard.

    None for a user's combiner whose identity is not a literal.
    """
    (value,) = identity(update, (dtype,))
    return value.value if isinstance(value, Literal) else None


def _scalar_identity(update: str, dtype: DType) -> Literal:
    match update:
        case "add" | "sub" | "or":
            return Literal(0, dtype)
        case "mul" | "and":
            return Literal(1, dtype)
        case "max":
            return Literal(_least(dtype), dtype)
        case "min":
            return Literal(_greatest(dtype), dtype)
        case _:
            raise ValueError(f"no update is called {update}")


def _greatest(dtype: DType) -> int | float:
    match dtype.kind:
        case Kind.FLOAT:
            return 448.0 if dtype.name == "f8e4m3" else math.inf
        case Kind.INT:
            return 2 ** (dtype.bits - 1) - 1
        case Kind.UINT:
            return 2**dtype.bits - 1
        case Kind.BOOL:
            return 1


def _least(dtype: DType) -> int | float:
    match dtype.kind:
        case Kind.FLOAT:
            return -448.0 if dtype.name == "f8e4m3" else -math.inf
        case Kind.INT:
            return -(2 ** (dtype.bits - 1))
        case Kind.UINT | Kind.BOOL:
            return 0


class Accumulator(Record):
    """An element (or tuple of elements) that iterations reduce into, and the update."""

    targets: tuple[Load, ...]
    update: ir.Update

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for two updates of the same elements."""
        return tuple((t.buffer, t.index) for t in self.targets)


def accumulators(body: tuple[ir.Stmt, ...], reduce: frozenset[Buffer]) -> tuple[Accumulator, ...]:
    """The elements of the buffers in `reduce` that `body` updates, each once."""
    found: dict[tuple[object, ...], Accumulator] = {}
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.Bind) and stmt.update is not None and stmt.targets[0].buffer in reduce:
            accumulator = Accumulator(stmt.targets, stmt.update)
            found.setdefault(accumulator.key, accumulator)
    return tuple(found.values())


def combine(update: Update, old: Sequence[Value], new: Sequence[Value]) -> tuple[Value, ...]:
    """The values of the targets after `new` is combined with `old`."""
    if not isinstance(update, str):
        return (_custom(update, old[0], new[0]),)
    if len(old) == 1:
        return (Op(update, (old[0], new[0]), old[0].dtype),)
    take = taken(update, old, new)
    return tuple(Op("select", (take, n, o), o.dtype) for o, n in zip(old, new, strict=True))


def _custom(update: Update, old: Value, new: Value) -> Value:
    assert not isinstance(update, str)
    values = {update.a: old, update.b: new}
    return map_value(update.value, lambda node: values.get(node.sym) if isinstance(node, Ref) else None)


def sum_and_product(value: Value) -> tuple[Value, Value, Value] | None:
    """x, a and b if `value` is x + a · b or x - a · b (then a is negated), in a type for which machines may fuse the two."""
    match value:
        case Op("add" | "sub" as name, (before, Op("mul", (a, b)))) if value.dtype.name in FUSED:
            return before, Op("neg", (a,), a.dtype) if name == "sub" else a, b
        case _:
            return None


def taken(update: str, old: Sequence[Value], new: Sequence[Value]) -> Value:
    """Whether a tuple `new` replaces `old`: by `update` on the first (a nan beats all numbers), ties by the smaller next
    one."""

    def op(name: str, *args: Value) -> Value:
        return Op(name, args, BOOL)

    wins = op("lt", new[-1], old[-1])
    for o, n in zip(reversed(old[1:-1]), reversed(new[1:-1]), strict=True):
        wins = op("or", op("lt", n, o), op("and", op("eq", n, o), wins))
    first_old, first_new = old[0], new[0]
    better = op("gt" if update == "max" else "lt", first_new, first_old)
    same = op("eq", first_new, first_old)
    if first_old.dtype.is_float:
        new_nan, old_nan = op("isnan", first_new), op("isnan", first_old)
        better = op("or", better, op("and", new_nan, op("not", old_nan)))
        same = op("or", same, op("and", new_nan, old_nan))
    return op("or", better, op("and", same, wins))
