"""Numbers that callers give: a row that `index[i]` names is a function of i, the same wherever it is read."""

from __future__ import annotations

from texpr.affine.expr import Expr, Sym, expr, number_of
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_load
from texpr.ir.value import Cast, Load, Value
from texpr.ir.value.types import widens
from texpr.support.record import replace


def by_number(function: ir.Function) -> ir.Function:
    """`function`, where subscripts that read what callers give, and nobody writes, say so by name: `index⟨i⟩`."""
    rewriter = Rewriter(value=lambda value: replace_loads(value, _named), target=_named)
    return replace(function, body=rewriter.block(function.body))


def _named(load: Load) -> Load:
    known, left = dict[Sym, Expr](), list[tuple[Sym, Value]]()
    for sym, meaning in load.data:
        source = _source(meaning)
        if source is None:
            left.append((sym, meaning))
        else:
            known[sym] = expr(number_of(f"{source.buffer.name}[]", (e.substitute(known) for e in source.index)))
    return substitute_load(replace(load, data=tuple(left)), known) if known else load


def _source(meaning: Value) -> Load | None:
    """What a subscript is read from, if it is what callers give, at a place that data say nothing of."""
    match meaning:
        case Cast(inner) if inner.dtype.is_integer and widens(inner.dtype, meaning.dtype):
            return _source(inner)
        case Load(buffer) if buffer.role == "input":
            named = _named(meaning)
            return None if named.data else named
        case _:
            return None
