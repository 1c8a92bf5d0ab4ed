"""Which loops of a thread are unrolled: those that a schedule marks, and those by which an array can be in registers."""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Unroll

MOST_UNROLLED = 64
"""The longest loop that is unrolled so that a thread's own array can be in registers."""


def unrolling(loop: ir.Loop) -> int | None:
    """The unroll factor of `loop`, 0 for all iterations; None without a mark, or if the loop was to be unrolled completely and
    has been divided since."""
    asked = mark(loop, Unroll)
    if asked is None:
        return None
    return asked.factor or (0 if loop.extent.is_constant else None)
