"""Whether one plan of a function is worth having beside another: by what multiprocessors need for it."""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.kernel.point import usual
from texpr.isa.registry import DEVICES
from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.model.bound import bound
from texpr.model.plan.work import instructed, launched, launches
from texpr.support.record import Record

SHARE = 0.92
"""Of what one plan takes, how much another may take at most to be worth its code. Bounds of plans are within 0.15 of those of
machine code, and mostly within 0.05: what is gained by less may be lost in fact. Vectors of a softmax, which take 0.91 by the
model, take 140 in place of 157 µs on an H200 (`bench/results/times.json`)."""


class Cost(Record):
    """Of all launches, one after the other: microseconds of the busiest unit of those that run instructions; instructions of
    warps."""

    us: float
    issued: float


def saves(one: k.Plan, other: k.Plan, target: Target) -> bool:
    """Whether `one` clearly costs less than `other`, at the sizes that are given, or at usual ones: its busiest unit needs so
    much less; or no more, as where special functions decide, and it issues so many instructions less.

    All warps of a block count: most may have nothing to do while the first one has all. What memory needs does not, as both
    plans move the same data.
    """
    made, before = cost(one, target), cost(other, target)
    return made.us <= SHARE * before.us or (made.us <= before.us and made.issued <= SHARE * before.issued)


def cost(plan: k.Plan, target: Target) -> Cost:
    """What a plan takes; of a target of which nobody knows how fast machines are, instructions are all that is known."""
    fixed, device = dict(plan.fixed), DEVICES.get(target.name)
    is_open = any(sym not in fixed for sym in plan.sizes)
    sizes = usual(plan)
    found = [_launch(kernel, times, sizes, target, device, is_open) for kernel, times in launched(plan.steps, sizes)]
    return Cost(sum(each.us for each in found), sum(each.issued for each in found))


def bound_us(plan: k.Plan, target: Target) -> float:
    """The bound of all launches, memory included, at the sizes that are given, or at usual ones, in microseconds; of a target
    of which nobody knows how fast machines are, instructions."""
    device = DEVICES.get(target.name)
    found = launches(plan, usual(plan), target)
    if device is None:
        return sum(each.work.issued * each.times for each in found)
    return sum(bound(each.work, each.shape, target, device).us * each.times for each in found)


def _launch(kernel: k.Kernel, times: int, sizes: dict[Sym, int], target: Target, device: Device | None, is_open: bool) -> Cost:
    """Where sizes are open, a launch is taken to fill the machine evenly: of any one size nothing follows for others."""
    work, shape = instructed(kernel, sizes, target)
    if device is None:
        return Cost(work.issued * times, work.issued * times)
    found = bound(work, shape, target, device)
    return Cost(found.us * times / (found.residence.loss if is_open else 1.0), work.issued * times)
