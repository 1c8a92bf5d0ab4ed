"""Binds: `v[…] = e`, updates `v[…] += e`, and both on tuples."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.frontend.elaboration import views
from texpr.frontend.elaboration.body.calls import check_writable
from texpr.frontend.elaboration.context import Context
from texpr.frontend.elaboration.expressions import operand, subscript_parts
from texpr.frontend.elaboration.scope import did_you_mean
from texpr.frontend.elaboration.typing import settle, widen, without_idle
from texpr.frontend.elaboration.views import Range, View
from texpr.frontend.parser.words import STATEMENTS, meant
from texpr.frontend.tree import Bind, Exp, Ident, Name, Subscript
from texpr.ir import program
from texpr.ir.program import Update
from texpr.ir.value import Load, Value
from texpr.ir.value.types import BOOL
from texpr.support.diagnostic import Note, Proposal, TexprError, error

_INFIX = {"+": "add", "-": "sub", "*": "mul"}
_LOGICAL = ("and", "or")
_EXTREMA = ("max", "min")


def bind(ctx: Context, statement: Bind) -> program.Bind:
    """A bind or update of one target or several."""
    if len(statement.targets) != len(statement.values):
        message = f"{_count(statement.targets, 'target')} and {_count(statement.values, 'value')}"
        help = "write `(a, b) = (x, y)`" if len(statement.targets) > 1 else None
        raise error("E0322", statement.span, message, help=help)
    update = _update(ctx, statement.op, statement.targets[0])
    targets = tuple(target(ctx, e) for e in statement.targets)
    if len(targets) > 1 and update is not None and update not in _EXTREMA:
        assert statement.op is not None
        raise error("E0322", statement.op.span, "an update of a tuple is `max=` or `min=`", help="update them one by one")
    for at, exp in zip(targets, statement.targets, strict=True):
        _check_update(update, at, exp, statement.op)
    values = tuple(_value(ctx, e, at, update) for e, at in zip(statement.values, targets, strict=True))
    return program.Bind(targets, values, update, statement.span)


def _count(items: Sequence[Exp], what: str) -> str:
    return f"{len(items)} {what}" + ("" if len(items) == 1 else "s")


def _update(ctx: Context, op: Ident | None, target: Exp) -> Update | None:
    if op is None:
        return None
    if op.name in _INFIX:
        return _INFIX[op.name]
    if op.name in (*_EXTREMA, *_LOGICAL):
        return op.name
    if op.name not in ctx.file.combines:
        known = [*_EXTREMA, *ctx.file.combines]
        help = (
            _misspelt(ctx, target)
            or did_you_mean(op.name, known)
            or "updates are += -= *= max= min= and= or=, and those of a `combine`"
        )
        raise error("E0211", op.span, f"unknown combiner `{op.name}`", help=help)
    found = ctx.file.combiners.get(op.name)
    if found is None:
        raise TexprError([])
    return found


def _misspelt(ctx: Context, target: Exp) -> str | Proposal | None:
    """The likely meaning of `target` if it is a word before a name, as in `lett a = x`, which looks like an update."""
    if isinstance(target, Name) and ctx.scope.find(target.name) is None:
        return meant(target.name, STATEMENTS)
    return None


def target(ctx: Context, e: Exp) -> Load:
    """The element that a bind writes."""
    if isinstance(e, Subscript):
        view, items, data = subscript_parts(ctx, e)
        if any(isinstance(item, Range) for item in items):
            raise error("E0321", e.span, "a bind writes one element, and this is a part", help="loop over it with `par`")
        check_writable(view, e)
        return views.element(view, [item for item in items if not isinstance(item, Range)], data.entries, e.span)
    assert isinstance(e, Name)
    entity = ctx.scope.resolve(e.name, e.span)
    if not isinstance(entity, View):
        binding = ctx.scope.find(e.name)
        notes = (Note(f"{binding.what} `{e.name}` is declared here", binding.span),) if binding is not None else ()
        help = f"for memory that changes, declare `new {e.name}: f32`"
        raise error("E0313", e.span, f"`{e.name}` is not memory and cannot be written to", *notes, help=help)
    if entity.rank > 0:
        help = f"write an element, `{e.name}[…] = …`, in a `par`"
        raise error("E0321", e.span, f"`{e.name}` is an array of rank {entity.rank}; a bind writes one element", help=help)
    check_writable(entity, e)
    return views.element(entity, (), (), e.span)


def _check_update(update: Update | None, at: Load, exp: Exp, op: Ident | None) -> None:
    """The target's type supports the update."""
    if update is None or op is None:
        return
    if not isinstance(update, str):
        if at.dtype != update.dtype:
            raise error("E0304", exp.span, f"`{update.name}` combines {update.dtype}, not {at.dtype}")
    elif (update in _LOGICAL) != (at.dtype == BOOL):
        wanted = "bools" if update in _LOGICAL else "numbers"
        raise error("E0304", op.span, f"`{op.name}=` updates {wanted}, not {at.dtype}")


def _value(ctx: Context, e: Exp, at: Load, update: Update | None) -> Value:
    found = operand(ctx, e)
    return without_idle(settle(found, at.dtype) if update is None else widen(found, at.dtype, "the target"))
