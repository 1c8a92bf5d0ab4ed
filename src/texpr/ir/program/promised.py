"""A function for callers who promise more: where arrays begin, and what holds of sizes.

It is the same function for fewer arguments, so that whatever is proved of it holds for those who keep the promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from texpr.ir import program as ir
from texpr.ir.program.rewrite import over
from texpr.support.record import replace


def promised(function: ir.Function, align: Mapping[str, int], where: Sequence[ir.Compare]) -> ir.Function:
    """`function` where the named parameters begin at multiples of so many bytes, and the facts hold, too; without schedules."""
    made = {b: replace(b, align=align[b.name]) for b in function.params if b.name in align}
    where = (*function.where, *where)
    return replace(over(function, lambda old: made.get(old, old)), where=where, schedules=())
