"""The promises of callers: `where` on sizes, `assume` on data."""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import ZERO, Expr, Sym
from texpr.frontend.elaboration.context import Context
from texpr.frontend.elaboration.expressions import plain_index
from texpr.frontend.elaboration.typing import COMPARISONS, truth
from texpr.frontend.elaboration.views import View
from texpr.frontend.tree import Assume as AssumeExp
from texpr.frontend.tree import AssumeInjective, AssumeMonotone, AssumeRange, Binary, Exp
from texpr.ir.program import Assume, Compare, Injective, InRange, Monotone
from texpr.ir.value import Buffer, Index, Op
from texpr.ir.value.types import BOOL, I64
from texpr.support.diagnostic import Note, error


def conjuncts(exp: Exp) -> list[Exp]:
    """The parts of `a and b and …`."""
    parts: list[Exp] = []
    stack = [exp]
    while stack:
        part = stack.pop()
        if isinstance(part, Binary) and part.op == "and":
            stack += (part.right, part.left)
        else:
            parts.append(part)
    return parts


def comparison(ctx: Context, exp: Exp) -> Compare:
    """A comparison of sizes."""
    if not isinstance(exp, Binary) or exp.op not in COMPARISONS:
        help = "write comparisons of sizes, such as `N % 8 == 0`, joined by commas or `and`"
        raise error("E0318", exp.span, "`where` takes comparisons", help=help)
    left = plain_index(ctx, exp.left, "a `where`")
    right = plain_index(ctx, exp.right, "a `where`")
    return Compare(exp.op, left, right, exp.span)


def known(fact: Compare, facts: Mapping[Sym, Expr]) -> bool | None:
    """Whether a comparison is decided: its sides differ by a constant after substitution of equal sizes."""
    apart = (fact.left - fact.right).substitute(facts)
    return truth(Op(COMPARISONS[fact.op], (Index(apart, I64), Index(ZERO, I64)), BOOL))


def assumption(ctx: Context, clause: AssumeExp) -> Assume:
    """A promise on the elements of an integer parameter."""
    buffer = _integers(ctx, clause)
    match clause:
        case AssumeInjective():
            return Injective(buffer, clause.span)
        case AssumeMonotone():
            if buffer.rank != 1:
                note = Note(f"`{clause.name.name}` is declared here", buffer.span)
                message = f"`monotone` speaks of an array of rank 1, and `{clause.name.name}` has rank {buffer.rank}"
                raise error("E0319", clause.name.span, message, note)
            return Monotone(buffer, clause.span)
        case AssumeRange(_, lo, hi):
            bounds = plain_index(ctx, lo, "an `assume`"), plain_index(ctx, hi, "an `assume`")
            return InRange(buffer, *bounds, clause.span)


def _integers(ctx: Context, clause: AssumeExp) -> Buffer:
    name = clause.name
    entity = ctx.scope.resolve(name.name, name.span)
    if not isinstance(entity, View):
        help = "promises on sizes are written `where`"
        raise error("E0319", name.span, f"`assume` speaks of a parameter, and `{name.name}` is none", help=help)
    if not entity.dtype.is_integer:
        note = Note(f"`{name.name}` is declared here", entity.buffer.span)
        raise error("E0319", name.span, f"`assume` speaks of integers, and `{name.name}` holds {entity.dtype}", note)
    return entity.buffer
