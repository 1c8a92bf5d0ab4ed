"""Structural equality of programs: nodes compare by identity, so both sides are made plain data first.

Buffers and combiners become their names with all that is known of them, and a load's data symbols (whose names and order mean
nothing) are replaced by what they stand for.
"""

from __future__ import annotations

from typing import Any

from texpr.affine.expr import Expr, Sym
from texpr.ir.program import Function, Program
from texpr.ir.value import Buffer, Load
from texpr.ir.value.types import DType


def form(node: Any, names: dict[Sym, str] | None = None) -> Any:
    """A program, function, statement or value as nested tuples of strings and numbers."""
    names = names or {}
    match node:
        case Program():
            return tuple(form(f) for f in node.functions)
        case Buffer():
            shape, strides = form(node.shape), form(node.strides)
            return ("buffer", node.name, node.dtype.name, shape, node.role, strides, node.align)
        case Load():
            known = dict(names)
            for symbol, meaning in node.data:
                known[symbol] = f"⟨{form(meaning, known)}⟩"
            return ("load", form(node.buffer), form(node.index, known))
        case Expr():
            replaced = node.substitute({s: Sym(names[s]) for s in node.syms() if s in names})
            return ("expr", str(replaced))
        case Sym():
            return names.get(node, node.name)
        case DType() | str() | int() | None:
            return str(node)
        case float():
            return repr(node)
        case tuple():
            return tuple(form(part, names) for part in node)
        case _:
            fields = [f for f in type(node).__slots__ if f != "span"]
            return (type(node).__name__, *(form(getattr(node, f), names) for f in fields))


def same(left: Program | Function, right: Program | Function) -> bool:
    """Whether two programs are equal but for places in the text."""
    return form(left) == form(right)
