"""A laid-out program with nests that are marked `#mma` as one in which lanes do instructions together: scales are brought
first, then it is nest after nest (`joint.convert`), and in the end operands that lanes compute in tensor memory."""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Joint
from texpr.isa.target import Target
from texpr.schedule.joint.convert import Converter
from texpr.schedule.joint.lanes.wide import wide
from texpr.schedule.joint.operands import operands_there
from texpr.schedule.joint.rowwise import Scattered, in_rows
from texpr.schedule.joint.scales import brought
from texpr.schedule.tree import replaced
from texpr.support.record import replace


def instructed(function: ir.Function, target: Target) -> ir.Function:
    """`function` with its marked nests as instructions. Raises TexprError E0919 where what is around one does not fit."""
    first = _marked(function)
    if first is None:
        return function
    if not target.has_warps:
        return _by_cores(function, target)
    function = brought(function, target, Converter(function, target, first).fresh)
    while (top := _marked(function)) is not None:
        made = Converter(function, target, top)
        function = wide(made.run(), made.pairs)
    return operands_there(function, target, first)


def _by_cores(function: ir.Function, target: Target) -> ir.Function:
    """The marked nests as instructions that a core does by itself."""
    while (top := _marked(function)) is not None:
        by = Converter(function, target, top)
        try:
            made = in_rows(by.nest(top))
        except Scattered as why:
            raise by.refuse(str(why), why.help) from None
        function = replace(function, body=replaced(function.body, top, lambda _, made=made: (made,)))
    return function


def _marked(function: ir.Function) -> ir.Loop | None:
    """The first marked nest."""
    return next((s for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)), None)
