"""Combining stores: when partial results of a tile may be accumulated separately, and combined with the buffer at the end.

Before: seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
After:  Cs[ti, tj] = 0;  seq K |k| reduce(Cs) { Cs[ti, tj] += … };  C[i, j] += Cs[ti, tj]

Every access is an update, all by one operation, whose order may be changed: sums of integers, which wrap, and their extrema;
sums of floating-point numbers only where each element is updated once, or in loops whose `reduce` frees the order. The
engine's extrema of floating-point numbers drop a nan, so they are not used.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.ir import program as ir
from texpr.ir.operation.tensor_map import combined_as
from texpr.ir.program.marked import is_atomic
from texpr.ir.program.updates import identity
from texpr.ir.value import Literal
from texpr.ir.value.types import DType
from texpr.schedule.stage.region import Use, varying
from texpr.schedule.state import State

JOINS = {"add": "add", "sub": "add", "min": "min", "max": "max"}
"""The operation by which the tile of an update is combined with the buffer."""


def combined_by_engine(update: ir.Update, dtype: DType) -> bool:
    """Whether the engine supports an update of elements of a type, with the result that threads compute."""
    op = JOINS.get(update) if isinstance(update, str) else None
    return op is not None and combined_as(op, dtype) is not None and (op == "add" or not dtype.is_float)


def are_updates(uses: Sequence[Use]) -> bool:
    """Whether every access is the target of an update of one element."""
    return all(_update(use) is not None for use in uses)


def operation(state: State, uses: Sequence[Use], flushes: bool = False) -> str:
    """The operation by which the tile is combined with the buffer. Raises ValueError with the reason where it may not.

    `flushes`: the engine's sums of f32 flush subnormal numbers, as atomic updates do, which the text has to permit.
    """
    ops = {JOINS.get(_update(use) or "") for use in uses}
    dtype = uses[0].load.dtype
    op = ops.pop()
    if ops or op is None:
        raise ValueError("it is updated by more than one operation, or by one that the engine has not")
    if dtype.is_float and op != "add":
        raise ValueError(f"the engine's {op} of {dtype} loses a nan")
    if combined_as(op, dtype) is None:
        raise ValueError(f"the engine does not combine {dtype} by {op}")
    if dtype.is_float:
        _require_free(state, uses)
    if flushes and dtype.name == "f32" and not any(_meets_by_atomics(use) for use in uses):
        name = uses[0].load.buffer.name
        asks = f"`reduce({name}) #atomic` asks for that"
        raise ValueError(f"a copy without a map adds f32 as atomics do, with zero for subnormal numbers; {asks}")
    return op


def _meets_by_atomics(use: Use) -> bool:
    """Whether a loop around permits atomic updates of the buffer."""
    around = (*use.outer, *use.inner)
    return any(use.load.buffer in loop.reduce and is_atomic(loop) for loop in around)


def neutral(op: str, dtype: DType) -> Literal:
    """The neutral element, bit for bit: −0 for sums of floating-point numbers."""
    if dtype.is_float:
        return Literal(-0.0, dtype)
    (value,) = identity(op, (dtype,))
    assert isinstance(value, Literal)
    return value


def _update(use: Use) -> str | None:
    stmt = use.stmt
    one = use.writes and isinstance(stmt, ir.Bind) and len(stmt.targets) == 1
    return stmt.update if one and isinstance(stmt, ir.Bind) and isinstance(stmt.update, str) else None


def _require_free(state: State, uses: Sequence[Use]) -> None:
    """The order of sums is free: there is one term for each element, or the text frees it."""
    buffer = uses[0].load.buffer
    for use in uses:
        along = varying(state, use)
        carrying = [loop for loop in use.inner if loop not in along]
        held = next((loop for loop in carrying if buffer not in loop.reduce), None)
        if held is not None:
            raise ValueError(
                f"the order of a sum of {buffer.dtype} would change, which `{held.sym.base}` keeps; "
                f"`reduce({buffer.name})` on that loop frees it"
            )
        if len(uses) > 1:
            raise ValueError(f"the order of a sum of {buffer.dtype} with several terms would change")
