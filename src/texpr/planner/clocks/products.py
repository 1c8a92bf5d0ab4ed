"""A turn of a product as tile operations: what the engine brings to a slot of a ring, and what the tensor core makes of it.

copy ─▶ product ─▶ release        a slot is filled again when all warpgroups of the block have released it
  ▲                   │
  └───── slots ───────┘
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from texpr.isa.registry import DEVICES
from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.model.modulo.turn import Dependence, Operation, Turn, Use
from texpr.planner.clocks.operations import ENGINE, MATRIX
from texpr.planner.clocks.told import searched, told
from texpr.planner.nest import Nest
from texpr.planner.strategy import Tile
from texpr.planner.tensor.cores import Asked, at_once, clocks_of
from texpr.support.record import Record, replace

LONGEST = 8
"""The most slots of a ring that `pipeline` makes."""


class Timed(Record):
    """A tile with what is said of its turn."""

    tile: Tile
    turn: Mapping[str, Any] | None

    def data(self) -> dict[str, Any]:
        """For `explain`."""
        return {**self.tile.data(), "turn": self.turn}


def timed(tile: Tile, asked: Asked, slots: int, nest: Nest, target: Target) -> Tile:
    """A tile with what is said of its turn, where products go on by themselves on a device of which enough is known."""
    device = DEVICES.get(target.name)
    if device is None or not asked.groups:
        return tile
    many = int(device.multiprocessors.value or 1)
    turn = turn_of(asked, slots, max(1, at_once(asked, nest, target) // many), device)
    found = None if turn is None else searched(turn)
    if turn is None or found is None:
        return tile
    least = next((n for n in range(2, slots) if _interval(turn, n) == found.interval), slots)
    said = told(turn, (1,), float(found.interval), slots)
    return Timed(tile, None if said is None else {**said, "slots_needed": least})


def turn_of(asked: Asked, slots: int, blocks: int, device: Device) -> Turn | None:
    """A turn with a ring of so many slots; None where nobody says how fast the device is at it."""
    product, brought, latency = *clocks_of(asked, device), device.latency.l2.value
    if product is None or brought is None or latency is None:
        return None
    copy = Operation("operands", (Use(ENGINE, round(brought / asked.groups)),), round(brought + latency))
    multiply = Operation("sums", (Use(MATRIX, round(product)),), round(product))
    released = Dependence(1, 0, multiply.clocks, slots, together=True)
    return Turn((copy, multiply), (Dependence(0, 1, copy.clocks), released), asked.groups * blocks, asked.groups)


def _interval(turn: Turn, slots: int) -> object:
    """Of the same with another ring."""
    brought, released = turn.dependences
    found = searched(replace(turn, dependences=(brought, replace(released, turns=slots))))
    return None if found is None else found.interval
