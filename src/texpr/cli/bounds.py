"""How far the results of a plan may be from the interpreter's, where instructions of another arithmetic sum up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from texpr import interp
from texpr.interp.dtypes import Array
from texpr.interp.shadow import Unbounded, shadow, shadowed
from texpr.ir.instr import Instr
from texpr.ir.kernel import Plan, rounding
from texpr.ir.kernel.turns.terms import terms
from texpr.ir.program import Function
from texpr.support.record import Record


class Bound(Record):
    """Of one result: `allowed`, the greatest difference of each element, None where no bound is known, for the `reason`.

    `instrs`: what sums up. `relative`: the greatest difference relative to the magnitude of what is summed up.
    """

    instrs: tuple[str, ...]
    allowed: Array | None = None
    relative: float = 0.0
    reason: str = ""


def bounds_of(function: Function, plan: Plan, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Bound]:
    """The bounds of those results that such instructions may be in.

    The interpreter's result and the plan's are both within the same distance of the exact one, as the interpreter adds each
    product by itself, which loses no more than a step of an instruction.
    """
    found: dict[str, dict[str, Instr]] = {}
    for each in plan.versions:
        for name, instrs in rounding(each).items():
            found.setdefault(name, {}).update({instr.name: instr for instr in instrs})
    if not found:
        return {}
    every = tuple({name: instr for named in found.values() for name, instr in named.items()}.values())
    try:
        beside = interp.run(shadow(function, sizes, every, terms(plan)), shadowed(function, arrays), sizes)
    except Unbounded as reason:
        return {name: Bound(tuple(named), reason=str(reason)) for name, named in found.items()}
    return {name: _bound(tuple(named), *(beside[f"{name}'{which}"] for which in "mgn")) for name, named in found.items()}


def _bound(instrs: tuple[str, ...], magnitude: Array, growth: Array, steps: Array) -> Bound:
    with np.errstate(over="ignore", invalid="ignore"):
        relative = 2 * np.expm1(growth + steps)
        allowed = relative * magnitude
    if not bool(np.all(np.isfinite(allowed))):
        return Bound(instrs, reason="an infinite or undefined number")
    return Bound(instrs, allowed, float(np.max(relative, initial=0.0)))
