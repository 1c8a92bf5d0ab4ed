"""Data-dependent subscripts that read parameters: the row `index[i]` is a function of i, the same wherever it is read."""

from __future__ import annotations

from texpr.affine.expr import Expr, Sym, expr, number_of
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_load
from texpr.ir.value import Cast, Load, Value
from texpr.ir.value.types import widens
from texpr.support.record import replace


def by_number(function: ir.Function) -> ir.Function:
    """`function` with subscripts that read input parameters replaced by a named function: `index⟨i⟩`."""
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
    """The load in a subscript, if it is of a parameter, at an index that does not depend on data."""
    match meaning:
        case Cast(inner) if inner.dtype.is_integer and widens(inner.dtype, meaning.dtype):
            return _source(inner)
        case Load(buffer) if buffer.role == "input":
            named = _named(meaning)
            return None if named.data else named
        case _:
            return None
