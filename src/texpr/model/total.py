"""The bound of a whole plan: of all its launches, one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.model.bound import bound
from texpr.model.plan.work import launches


def total(plan: k.Plan, sizes: Mapping[Sym, int], target: Target, device: Device) -> float:
    """Microseconds. A launcher takes one version of a plan, by addresses that are not known here: the least of all versions."""
    return min(
        sum(bound(each.work, each.shape, target, device).us * each.times for each in launches(version, sizes, target))
        for version in plan.versions
    )
