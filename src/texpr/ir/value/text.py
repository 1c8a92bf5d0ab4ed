"""Index expressions and values as text; the grammar is in `texpr.ir.kernel.text`, and `texpr.ir.value.parse` reads it back."""

from __future__ import annotations

from math import isinf, isnan
from typing import TypeAlias, assert_never

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import DType

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "and", "or": "or",
}  # fmt: skip
"""The infix operators."""

Types: TypeAlias = dict[Sym, DType]
"""The types of the variables declared so far, in textual order."""


def list_text(values: tuple[Expr | int, ...]) -> str:
    """Index expressions in brackets."""
    return f"[{', '.join(map(str, values))}]"


def value_text(value: Value, types: Types) -> str:
    """A value. A `Ref` has its type in the text if the type of its variable is another one."""
    match value:
        case Literal():
            return f"{_number(value.value)}:{value.dtype}"
        case Index():
            return f"{value.dtype}({value.expr})"
        case Ref():
            return f"{value.sym}" if types.get(value.sym) == value.dtype else f"{value.sym}:{value.dtype}"
        case Load():
            data = "".join(f"; {sym} = {value_text(meaning, types)}" for sym, meaning in value.data)
            return f"{value.buffer.name}[{', '.join(map(str, value.index))}{data}]"
        case Cast():
            return f"({value_text(value.arg, types)} as {value.dtype})"
        case Op():
            return _op(value, types)
        case _:
            assert_never(value)


def _op(value: Op, types: Types) -> str:
    args = [value_text(arg, types) for arg in value.args]
    natural = value.name in OPS and value.dtype == OPS[value.name].result([arg.dtype for arg in value.args])
    if natural and value.name in INFIX:
        return f"({args[0]} {INFIX[value.name]} {args[1]})"
    return f"{value.name}{'' if natural else f':{value.dtype}'}({', '.join(args)})"


def _number(value: int | float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if isnan(value):
        return "+nan"
    if isinf(value):
        return "+inf" if value > 0 else "-inf"
    return float.__repr__(value)
