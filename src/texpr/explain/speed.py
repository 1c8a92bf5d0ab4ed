"""How fast each kernel can be at most, by the model of the machine, read from the plan and from machine code."""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import Sym
from texpr.driver import Compiled
from texpr.explain.data import Data
from texpr.ir import kernel as k
from texpr.ir.kernel.point import assumed, usual
from texpr.isa.constants import constant_bank
from texpr.isa.levels import Level
from texpr.isa.registry import DEVICES
from texpr.isa.speed import Device
from texpr.model.bound import Bound, bound, peak, ratio
from texpr.model.code.program import program
from texpr.model.code.steady import Steady, steady
from texpr.model.code.text import Code, read_code
from texpr.model.code.walk import MOST, Launch, count
from texpr.model.code.work import ROUND, read_work
from texpr.model.least import least
from texpr.model.plan.reach import extent_of
from texpr.model.plan.turn import turn_clocks
from texpr.model.plan.work import Launched, launches
from texpr.model.work import Shape, Work
from texpr.support.record import replace
from texpr.toolchain.resources import Resources


def speed(
    compiled: Compiled, text: str | None, resources: Mapping[str, Resources], device: Device | None = None
) -> Data | None:
    """None where nothing is known of how fast the target's machines are. `text`: the machine code, where there is any.
    `device`: of which it is said, in place of the one that stands for the target.

    `sizes`: at which all of it is said; `assumed`: those of them that nobody gave. `bound_us`: of all launches, one after the
    other; `least_us`: what any program for the function needs, to move bytes or to compute; `ratio`: of the two. `kernels`: by
    name, what one launch is bound by, as the plan says and (`code`) as machine code does; `peak_share`: the part of the bound
    that the tensor cores would take for its products at their peak; `turn`: clocks of a turn of products that go on by
    themselves, and those if each were waited for at once.
    """
    device = device or DEVICES.get(compiled.target.name)
    if device is None:
        return None
    sizes = usual(compiled.plan)
    codes = {code.kernel: code for code in read_code(text or "")}
    found: dict[str, Data] = {}
    total = 0.0
    for each in launches(compiled.plan, sizes, compiled.target):
        name = each.kernel.name
        found[name] = _kernel(each, sizes, resources.get(name), codes.get(name), compiled, device)
        total += found[name]["bound_us"] * each.times
    needed = least(compiled.written or compiled.function, sizes, device)
    return {
        "device": device.name,
        "sizes": {sym.name: value for sym, value in sizes.items()},
        "assumed": [sym.name for sym in assumed(compiled.plan)],
        "bound_us": total,
        "least_us": needed.us,
        "least": {"dram_us": needed.dram, "operations_us": needed.unit},
        "ratio": ratio(total, needed),
        "kernels": found,
    }


def _kernel(
    each: Launched, sizes: Mapping[Sym, int], found: Resources | None, code: Code | None, compiled: Compiled, device: Device
) -> Data:
    shape = each.shape if found is None else replace(each.shape, registers=found.registers)
    by_plan, alone = bound(each.work, shape, compiled.target, device), peak(each.work, device)
    share = None if alone is None or not by_plan.us else alone / by_plan.us
    turn = turn_clocks(each.kernel, sizes, by_plan.residence.blocks, compiled.target, device)
    told = None if turn is None else {"clocks": turn[0], "all_waited_for": turn[1]}
    data = {"launches": each.times, "peak_share": share, "turn": told, **_bound(by_plan, each)}
    return {**data, "code": None if code is None else _code(each, sizes, shape, code, by_plan, compiled, device)}


def _bound(made: Bound, each: Launched, work: Work | None = None) -> Data:
    held, work = made.residence, work or each.work
    lanes = work.issued * each.kernel.warp
    return {
        "bound_us": made.us,
        "deciding": made.deciding,
        "units_us": {part.unit: part.us for part in made.parts},
        "unknown": list(made.unknown),
        "bytes": {"dram": work.dram, "l2": work.l2, "l1": work.l1 * ROUND, "shared": work.shared * ROUND},
        "instructions_per_element": lanes / each.elements if each.elements else None,
        "waves": held.waves,
        "resident_blocks": held.blocks,
        "resident_by": held.by,
        "loss": held.loss,
    }


def _code(
    each: Launched, sizes: Mapping[Sym, int], shape: Shape, code: Code, plan: Bound, compiled: Compiled, device: Device
) -> Data | None:
    """What machine code says of the same launch; of the bytes of memory it says what the plan does."""
    launch, fixed = launch_of(each.kernel, sizes, compiled), dict(compiled.plan.fixed)
    if launch is None:
        return None
    made = program(code)
    counts = count(made, launch, MOST if sizes.keys() == fixed.keys() else FEW)
    reading = read_work(code, counts, compiled.target, each.work)
    by_code = bound(reading.work, shape, compiled.target, device)
    held = by_code.residence
    turn = steady(made, counts, held.warps, held.blocks, compiled.target, device)
    return {
        **_bound(by_code, each, reading.work),
        "plan_over_code": plan.us / by_code.us if by_code.us and not reading.cut else None,
        "unknown_opcodes": list(reading.unknown),
        "decided_by_data": [f"{address:#x}" for address in reading.undecided],
        "whole": not reading.cut,
        "engine_copies": reading.engine,
        "spilled_bytes": reading.work.spilled,
        "steady": None if turn is None else _steady(turn),
    }


def _steady(turn: Steady) -> Data:
    return {
        "loop": f"{turn.loop:#x}",
        "instructions": turn.instructions,
        "clocks": turn.clocks,
        "least_clocks": turn.least,
        "unit": turn.unit,
        "share": turn.share,
    }


def launch_of(kernel: k.Kernel, sizes: Mapping[Sym, int], compiled: Compiled) -> Launch | None:
    """How the host launches a kernel at these sizes: arguments are scalars, arrays, sizes and maps, in this order. None where
    nothing is known of where the machine has its arguments."""
    bank = constant_bank(compiled.target.capability)
    if bank is None:
        return None
    grid, block = [1, 1, 1], [1, 1, 1]
    for axis in kernel.axes:
        at = "xyz".index(axis.dim) if axis.level in (Level.GRID, Level.BLOCK) else 0
        if axis.level is Level.GRID:
            grid[at] = extent_of(axis.extent, sizes)
        elif axis.level is Level.BLOCK:
            block[at] = axis.extent.constant
    arguments: list[tuple[int, int | None]] = [(max(1, buffer.dtype.bytes), None) for buffer in kernel.scalars]
    arguments += [(POINTER, (number + 1) << ALIGNED) for number in range(len(kernel.buffers))]
    arguments += [(INTEGER, sizes.get(sym, 0)) for sym in kernel.sizes]
    return Launch(_three(grid), _three(block), tuple(arguments), bank, kernel.cluster, kernel.warp)


FEW = MOST // 10
"""Blocks of code to walk through at sizes that nobody gave."""

POINTER, INTEGER = 8, 4
"""Bytes of an argument."""

ALIGNED = 40
"""Arrays are taken to lie at multiples of two to this power."""


def _three(extents: list[int]) -> tuple[int, int, int]:
    return extents[0], extents[1], extents[2]
