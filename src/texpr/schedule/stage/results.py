"""The alignment of results that a schedule requires, in bytes, which a launch checks."""

from __future__ import annotations

from collections.abc import Mapping

from texpr.ir import program as ir
from texpr.ir.program.rewrite import over
from texpr.schedule.state import State
from texpr.support.record import replace


def with_results(state: State, needed: Mapping[str, int]) -> State:
    """The function with results aligned to such multiples of bytes, by name."""
    function = aligned(state.function, needed)
    return state if function is state.function else replace(state, function=function)


def aligned(old: ir.Function, needed: Mapping[str, int]) -> ir.Function:
    """A function with results aligned to such multiples of bytes, by name."""
    changed = {b: replace(b, align=needed[b.name]) for b in old.results if needed.get(b.name, b.align) != b.align}
    return over(old, lambda found: changed.get(found, found)) if changed else old
