"""Combiners: `combine name(a: T, b: T): T identity e { return … }`."""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.frontend.elaboration.context import Context, File, Making
from texpr.frontend.elaboration.drafts import Typed
from texpr.frontend.elaboration.expressions import operand, value
from texpr.frontend.elaboration.scope import Scope
from texpr.frontend.elaboration.typing import lookup_type, settle
from texpr.frontend.tree import Combine, Let, Param, Return
from texpr.ir.program import Combiner
from texpr.ir.value import Ref, Value
from texpr.ir.value.types import DType
from texpr.support.diagnostic import Note, error


def make_combiner(file: File, combine: Combine) -> Combiner:
    """The combiner in program form. Raises `TexprError`."""
    dtype = lookup_type(combine.result.dtype)
    if len(combine.params) != 2 or combine.result.shape:
        help = f"write `combine {combine.name.name}(a: {dtype}, b: {dtype}): {dtype} identity …`"
        raise error("E0323", combine.name.span, "a combiner makes one number of two", help=help)
    making = Making(file)
    ctx = Context(making, Scope(), [])
    identity = settle(operand(ctx, combine.identity), dtype)
    symbols: list[Sym] = []
    for param in combine.params:
        if not isinstance(param, Param) or param.type.shape or param.inout or lookup_type(param.type.dtype) != dtype:
            note = Note(f"the result is {dtype}", combine.result.span)
            raise error("E0323", param.span, f"both parameters of a combiner are of its type, {dtype}", note)
        symbol = Sym(making.namer.unique(param.name.name))
        symbols.append(symbol)
        ctx.scope.declare(param.name, Typed(Ref(symbol, dtype)), "the parameter")
    a, b = symbols
    return Combiner(combine.name.name, a, b, dtype, identity, _value(ctx, combine, dtype), combine.span)


def _value(ctx: Context, combine: Combine, dtype: DType) -> Value:
    last = combine.body[-1] if combine.body else None
    if not isinstance(last, Return) or len(last.values) != 1:
        raise error("E0323", combine.name.span, "the body of a combiner ends in `return` and one value")
    for statement in combine.body[:-1]:
        if not isinstance(statement, Let) or len(statement.names) != 1:
            raise error("E0323", statement.span, "the body of a combiner is `let`s and a `return`")
        ctx.scope.declare(statement.names[0], value(ctx, statement.value), "the name")
    return settle(operand(ctx, last.values[0]), dtype)
