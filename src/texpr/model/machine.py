"""What follows from the records of a device: how many blocks a multiprocessor holds, in how many waves a launch runs."""

from __future__ import annotations

from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.model.work import Shape
from texpr.support.record import Record


class Residence(Record):
    """`blocks`: that a multiprocessor can hold at once; `by`: what allows no more. `warps`: of those that it has, which are
    fewer where the launch has few. `waves`: how often all multiprocessors are filled until all blocks have run. `loss`: how
    much longer the one with most blocks is at work than if all had the same: it has ⌈blocks / multiprocessors⌉."""

    blocks: int
    by: str
    warps: int
    waves: int
    loss: float


def residence(shape: Shape, target: Target, device: Device) -> Residence:
    """How a launch fills a device. A block that does not fit at all counts as one."""
    warps = -(-shape.threads // target.warp)
    portion = device.allocation
    limits = {"blocks": target.resident_blocks, "threads": target.resident_threads // (warps * target.warp)}
    if shape.registers:
        each = -(-shape.registers * target.warp // portion.registers) * portion.registers
        # Registers are dealt to the schedulers, each of which hands out a share of whole warps.
        held = target.registers_block // device.schedulers // each * device.schedulers
        limits["registers"] = held // warps
    if shape.shared:
        taken = -(-shape.shared // portion.shared) * portion.shared + portion.reserved
        limits["shared memory"] = target.shared_multiprocessor // taken
    by = min(limits, key=lambda name: limits[name])
    held = max(1, limits[by])
    many = int(device.multiprocessors.value or 1)
    waves = -(-shape.blocks // (many * held))
    fullest = -(-shape.blocks // many)
    return Residence(
        held, by, min(held, max(1, fullest)) * warps, waves, fullest * many / shape.blocks if shape.blocks else 1.0
    )
