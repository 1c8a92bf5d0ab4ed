"""Binds that an asynchronous copy can execute: an element of shared memory gets one of global memory, unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from texpr.domain.correctness.holes import Number, same_fill
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Literal, Load


def is_copy(bind: ir.Bind, places: Mapping[Buffer, Place]) -> bool:
    """Whether `bind` copies one element of global memory to shared memory, unchanged."""
    if bind.update is not None or len(bind.targets) != 1 or not isinstance(bind.values[0], Load):
        return False
    target, source = places.get(bind.targets[0].buffer), places.get(bind.values[0].buffer)
    into = target is not None and target.space is k.Space.SHARED
    out_of = bind.values[0].buffer.rank > 0 and (source is None or source.space is k.Space.GLOBAL)
    return into and out_of and not bind.targets[0].data


def filled(stmt: ir.If) -> tuple[ir.Bind, Number] | None:
    """The bind of `if p { a = b } else { a = 7 }`, and the 7."""
    match stmt.then, stmt.orelse:
        case (ir.Bind(update=None) as bind,), (ir.Bind(values=(Literal(value),), update=None) as other,):
            same = [(t.buffer, t.index) for t in bind.targets] == [(t.buffer, t.index) for t in other.targets]
            return (bind, value) if same else None
        case _:
            return None


def filled_with_zero(stmt: ir.If) -> ir.Bind | None:
    """The bind of `if p { a = b } else { a = 0 }`; -0 is not accepted, nor what b is of a row that is only looked up where p
    holds."""
    found = filled(stmt)
    if found is None or not same_fill(found[1], 0):
        return None
    return None if any(isinstance(value, Load) and value.data for value in found[0].values) else found[0]
