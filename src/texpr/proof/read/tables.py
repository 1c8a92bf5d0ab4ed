"""Integers that are elements of tables whose range callers promise: one function of the subscripts, wherever they are read.

A table is a parameter that nothing writes, so that `let n = table[b, t]` is `table⟨b, t⟩` in a program and in a kernel alike.
Of that is known what is promised, where there is such an element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from texpr.affine.expr import Expr, Number, Rules, Sym, number_of
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Load, Value, walk

Tables: TypeAlias = Mapping[str, Rules]
"""What is promised of each table, by its name."""


def rules_of(table: Buffer, assumes: Sequence[ir.Assume]) -> Rules:
    """What is promised of the elements of a table."""
    ranges = [a for a in assumes if isinstance(a, ir.InRange) and a.buffer.name == table.name]
    lo, hi = (ranges[0].lo, ranges[0].hi) if ranges else (None, None)
    injective, monotone = (
        any(isinstance(a, kind) and a.buffer.name == table.name for a in assumes) for kind in (ir.Injective, ir.Monotone)
    )
    return Rules(table.shape, lo, hi, injective, monotone)


def tables_of(function: ir.Function) -> Tables:
    """The tables of a function with a promised range."""
    promised = {a.buffer.name for a in function.assumes if isinstance(a, ir.InRange)}
    return {b.name: rules_of(b, function.assumes) for b in function.params if b.role == "input" and b.name in promised}


def number_in(value: Value | None, tables: Tables) -> Number | None:
    """The integer that a value is, if it is an element of a table at an index that no other data say."""
    plain = isinstance(value, Load) and value.buffer.role == "input" and not value.data and value.dtype.is_integer
    if not plain or not isinstance(value, Load) or value.buffer.name not in tables:
        return None
    return number_of(f"{value.buffer.name}[]", value.index, tables[value.buffer.name])


def read_at(value: Value, meant: Value) -> dict[Sym, Expr]:
    """The indices for which `value` is `meant`, by the subscripts of loads in both: divided loops have other names."""
    loads = zip(*([each for each in walk(v) if isinstance(each, Load)] for v in (value, meant)), strict=False)
    pairs = (pair for own, other in loads if own.buffer == other.buffer for pair in zip(other.index, own.index, strict=True))
    return {sym: own for other, own in pairs if (sym := other.as_sym) is not None}
