"""The execution of a kernel by one thread at one point: values of indices, conditions on them, and addresses of elements."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Fact, Known
from texpr.ir import kernel as k
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Value
from texpr.ir.value import walk as value_walk

SIZE = 4096
"""The assumed value of a run-time size."""

_LEAST = {"==": (0, 0), "<=": (None, 0), "<": (None, 1), ">=": (0, None), ">": (1, None)}
"""How much the left side of a comparison exceeds the right one by at least, and the right one the left."""

Point = dict[Sym, int]
"""The values of the thread's coordinates, and of the indices of enclosing loops."""


def usual(plan: k.Plan) -> dict[Sym, int]:
    """Sizes at which a plan is looked at: those that it is for, and else the nearest to `SIZE` that callers promise."""
    known, fixed = _promised(plan), dict(plan.fixed)
    ends = {sym: known.bounds(expr(sym)) for sym in plan.sizes if sym not in fixed}
    return {**fixed, **{sym: max(lo or 0, SIZE if hi is None else min(hi, SIZE)) for sym, (lo, hi) in ends.items()}}


def assumed(plan: k.Plan) -> list[Sym]:
    """The sizes that neither a plan is for, nor a promise gives."""
    said = {**dict(plan.fixed), **_promised(plan).fixed}
    return [sym for sym in plan.sizes if sym not in said]


def _promised(plan: k.Plan) -> Known:
    return Known({sym: (0, None) for sym in plan.sizes}, [fact for each in plan.requires for fact in _facts(each)])


def _facts(promise: k.Compare) -> Iterator[Fact]:
    above, below = _LEAST.get(promise.op, (None, None))
    if above is not None:
        yield Fact(above, promise.left - promise.right, None)
    if below is not None:
        yield Fact(below, promise.right - promise.left, None)


def touched(stmt: k.Stmt) -> Iterator[tuple[Load, str, int]]:
    """The accesses of `stmt`: first element, kind, and the number of elements that each lane moves at once."""
    for value in stmt.computed if isinstance(stmt, k.Operation) else k.values(stmt):
        yield from _loads(value)
    if isinstance(stmt, k.Operation):
        yield from sorted(stmt.costs, key=lambda each: each[1] != "load")  # reads come first


def _loads(value: Value) -> Iterator[tuple[Load, str, int]]:
    seen: set[tuple[Buffer, tuple[Expr, ...]]] = set()
    for node in value_walk(value):
        if isinstance(node, Load) and (node.buffer, node.index) not in seen:
            seen.add((node.buffer, node.index))
            yield node, "load", 1


def address(load: Load, lane: Point) -> int | None:
    """The element's offset from the start of its buffer, in elements."""
    strides = load.buffer.strides
    total = 0
    for at, index in enumerate(load.index):
        value = number(index, lane)
        if value is None:
            return None
        if strides is not None:
            step = number(strides[at], lane)
            if step is None:
                return None
            total += value * step
        else:
            extent = number(load.buffer.shape[at], lane)
            total = total * (SIZE if extent is None else extent) + value
    return total


def number(value: Expr, lane: Point) -> int | None:
    """The value of an expression at a point, None if a symbol has no value there."""
    return value.evaluate(lane) if value.syms() <= lane.keys() else None


def holds(condition: Value, lane: Point, unknown: bool) -> bool:
    """Whether a condition on indices is true at a point; `unknown` if it depends on data."""
    match condition:
        case Op("and", (one, other)):
            return holds(one, lane, unknown) and holds(other, lane, unknown)
        case Op("lt" | "eq" | "le" | "gt" | "ge" | "ne" as name, (Index() | Literal() as one, Index() | Literal() as other)):
            left, right = _side(one, lane), _side(other, lane)
            if left is None or right is None:
                return unknown
            return {
                "lt": left < right, "le": left <= right, "gt": left > right,
                "ge": left >= right, "eq": left == right, "ne": left != right,
            }[name]  # fmt: skip
        case _:
            return unknown


def _side(value: Index | Literal, lane: Point) -> int | None:
    return int(value.value) if isinstance(value, Literal) else number(value.expr, lane)
