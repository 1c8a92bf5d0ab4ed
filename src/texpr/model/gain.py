"""Whether one plan of a function has less to do than another."""

from __future__ import annotations

from texpr.ir import kernel as k
from texpr.ir.kernel.point import SIZE
from texpr.isa.target import Target
from texpr.model.plan.walk import walk_of
from texpr.model.plan.work import launched

SHARE = 0.9
"""Of the instructions of one plan, how many another may have at most to be worth its code."""


def saves(one: k.Plan, other: k.Plan, target: Target) -> bool:
    """Whether `one` issues clearly fewer instructions than `other`, at the sizes that are given, or at usual ones."""
    return _issued(one, target) <= SHARE * _issued(other, target)


def _issued(plan: k.Plan, target: Target) -> float:
    """By a block of each launch, as both plans have most of their work inside."""
    sizes = {**{sym: SIZE for sym in plan.sizes}, **dict(plan.fixed)}
    counts = ((walk_of(kernel, sizes, target.coalescing, roughly=True), times) for kernel, times in launched(plan.steps, sizes))
    return sum(walk.run().sums["issued"] * times for walk, times in counts)
