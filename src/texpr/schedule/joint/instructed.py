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
from texpr.schedule.joint.scales import brought


def instructed(function: ir.Function, target: Target) -> ir.Function:
    """`function` with its marked nests as instructions. Raises TexprError E0919 where what is around one does not fit."""
    first = _marked(function)
    if first is None:
        return function
    function = brought(function, target, Converter(function, target, first).fresh)
    while (top := _marked(function)) is not None:
        made = Converter(function, target, top)
        function = wide(made.run(), made.pairs)
    return operands_there(function, target, first)


def _marked(function: ir.Function) -> ir.Loop | None:
    """The first marked nest."""
    return next((s for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)), None)
