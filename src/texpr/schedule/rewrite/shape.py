"""Preconditions of directives that change the shape of loops."""

from __future__ import annotations

from texpr.affine.expr import Expr
from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.ir.program.marks import Async, Bind, Overlap, Pipeline, Unroll, Vector
from texpr.relation.facts import known
from texpr.schedule.call import Call
from texpr.schedule.edits import Offers, promise, said
from texpr.schedule.rewrite.materialise import given
from texpr.support.diagnostic import Edit, Proposal
from texpr.support.span import Span


def free_loop(call: Call, argument: ir.Argument, *, copying: bool = False) -> ir.Loop:
    """The loop of an argument, with no mark that fixes its shape. `copying`: one that starts copies is allowed."""
    loop = call.loop(argument)
    if isinstance(loop, ir.Par) and loop.fully:
        reason = f"the loop over `{loop.sym.base}` is `fully par`: its iterations are lanes already"
        raise call.refuse("E0905", reason, at=argument)
    for directive in loop.directives:
        if isinstance(directive, Bind | Unroll | Vector | Pipeline | Overlap) or (isinstance(directive, Async) and not copying):
            reason = f"`{loop.sym.base}` has been given to `{directive.name}` already, so its shape must stay"
            help = f"a loop is shaped first, and what comes of it is given to `{directive.name}`"
            raise call.refuse("E0905", reason, at=argument, help=help, offers=_ahead(call, directive.span))
    return loop


def sizes_known(call: Call) -> Known:
    """What is promised of sizes."""
    return known(given(call.state.function))


def positive(call: Call, argument: ir.Argument) -> Expr:
    """A factor, proved to be 1 or more."""
    factor = call.size(argument)
    if factor.is_constant and factor.constant < 1:
        raise call.wrong(f"needs a factor of 1 or more, not {factor}", argument)
    if not sizes_known(call).positive(factor):
        reason = f"the factor `{factor}` may be 0 or less"
        raise call.refuse("E0914", reason, at=argument, offers=promise(call.state.function, f"where {factor} >= 1"))
    return factor


def _ahead(call: Call, other: Span) -> Offers:
    """The offer to move this directive before another one."""
    own = call.directive.span
    if said(own) is None or said(other) is None or not other.end <= own.start:
        return ()
    text = own.source.text
    new = f"{own.text}  {text[other.start : own.start].rstrip()}"
    return (Proposal(f"write it ahead of `{other.text}`", Edit(new, other.to(own))),)
