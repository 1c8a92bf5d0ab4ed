"""The results of a body: local buffers, `inout` parameters, or a scalar expression, which gets a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.frontend.elaboration import views
from texpr.frontend.elaboration.context import Context, Slot
from texpr.frontend.elaboration.expressions import operand, plain_index, value
from texpr.frontend.elaboration.typing import lookup_type, settle
from texpr.frontend.elaboration.views import View
from texpr.frontend.tree import Exp, Name, Return, Statement, TypeExp
from texpr.ir.program import Bind, New
from texpr.ir.value import Buffer, Load
from texpr.ir.value.types import DType
from texpr.support.diagnostic import Note, TexprError, error


def returned_names(statements: Sequence[Statement]) -> list[str | None]:
    """The names that a body returns, None for an expression."""
    last = statements[-1] if statements else None
    return [e.name if isinstance(e, Name) else None for e in last.values] if isinstance(last, Return) else []


def results(ctx: Context, last: Return, types: Sequence[TypeExp]) -> tuple[View, ...]:
    """The results, checked against the types that the function declares."""
    if len(last.values) != len(types):
        declared = "no result" if not types else "1 result" if len(types) == 1 else f"{len(types)} results"
        help = "declare the results after the parameters, `fn f(…): f32[n]`" if not types else None
        raise error("E0314", last.span, f"{len(last.values)} returned, and the function declares {declared}", help=help)
    found: list[View] = []
    for at, (e, declared) in enumerate(zip(last.values, types, strict=True)):
        try:
            found.append(_result(ctx, e, declared, at))
            if found[-1].buffer in [v.buffer for v in found[:-1]]:
                raise error("E0314", e.span, "the same buffer is returned twice", help="copy it into a `new` one")
        except TexprError as raised:
            ctx.making.keep(raised)
    return tuple(found)


def _result(ctx: Context, e: Exp, declared: TypeExp, at: int) -> View:
    dtype = lookup_type(declared.dtype)
    if declared.align is not None and isinstance(e, Name) and _is_parameter(ctx, e):
        raise error("E0314", declared.align.span, f"`{e.name}` says how it is aligned where it is a parameter")
    shape = tuple(plain_index(ctx, s, "the shape of a result") for s in declared.shape)
    entity = value(ctx, e) if isinstance(e, Name) or shape else None
    if not isinstance(entity, View) or (entity.rank == 0 and entity.buffer.role == "input"):
        return _computed(ctx, e, dtype, declared, at)
    if not entity.whole or entity.buffer.role == "input":
        what = "a parameter that is only read" if entity.buffer.role == "input" else "a part or view of a buffer"
        help = "return a `new` buffer, or an `inout` parameter"
        raise error("E0314", e.span, f"{what} cannot be returned", help=help)
    if entity.buffer.role == "local" and not ctx.making.calls:
        name = entity.buffer.name
        raise error("E0314", e.span, f"this is another name of `{name}`", help=f"return `{name}` itself")
    if entity.dtype != dtype:
        note = Note("the result is declared here", declared.span)
        raise error("E0314", e.span, f"this is an array of {entity.dtype}, and the result is {dtype}", note)
    same = entity.rank == len(shape) and all(map(ctx.making.equal, entity.shape, shape))
    if not same:
        note = Note("the result is declared here", declared.span)
        ours, theirs = (f"[{', '.join(map(str, s))}]" for s in (entity.shape, shape))
        raise error("E0314", e.span, f"this has shape {ours}, and the result is declared {theirs}", note)
    return entity


def _is_parameter(ctx: Context, e: Name) -> bool:
    entity = ctx.scope.resolve(e.name, e.span)
    return isinstance(entity, View) and entity.buffer.role == "inout"


def _computed(ctx: Context, e: Exp, dtype: DType, declared: TypeExp, at: int) -> View:
    """A scalar expression that is returned: it gets a buffer of rank 0."""
    if declared.shape:
        raise error("E0314", e.span, f"the result is an array of rank {len(declared.shape)}", help="return a `new` buffer")
    what = settle(operand(ctx, e), dtype)
    name = e.name if isinstance(e, Name) else f"#{at}"
    slot = ctx.slots.get(name) or Slot(ctx.making.namer.unique("result"), "result")
    buffer = Buffer(slot.name, dtype, (), slot.role, None, slot.align, e.span)
    ctx.out.append(New(buffer, span=e.span))
    ctx.out.append(Bind((Load(buffer, (), (), e.span),), (what,), None, e.span))
    return views.whole(buffer)
