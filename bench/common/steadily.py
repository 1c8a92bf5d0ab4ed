"""How long the products of a launch take if all go as they do in the steady turns of their loops, and what stands between them.

A bound says nothing of what a loop waits for; a turn says it of one loop. Here the turns of all loops that have products are
summed up, each as often as it is run, and scaled to all products of the launch: so kernels that cut the same work otherwise can
be compared. What stands before and behind these loops, or between them in a loop over tiles, is not in it, nor what data of the
engine are waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.model.bound import Bound
from texpr.model.code.classes import product, unit
from texpr.model.code.flow import Loop
from texpr.model.code.program import Program
from texpr.model.code.steady import body_of, turn_of
from texpr.model.code.text import Instruction
from texpr.model.code.walk import Counts
from texpr.model.machine import Residence

SETS = ("HGMMA", "QGMMA", "IGMMA", "BGMMA")
"""Products that go on by themselves."""

_NOTHING = ("NOP", "LDC", "ULDC", "LDCU")
"""What takes a slot, and no lane waits for."""


@dataclass(frozen=True, slots=True)
class Steadily:
    """`us`: microseconds of all products of a launch in steady turns, `alone_us` without the loss of the last wave. `in_row`:
    the share of products in these loops that follow another with no instruction of lanes between; `beside`: instructions a
    product there that are none."""

    us: float
    alone_us: float
    in_row: float
    beside: float


def steadily(made: Program, counts: Counts, limit: Bound, target: Target, device: Device) -> Steadily | None:
    """None where no loop has products that go on by themselves, or one's turn is not known."""
    held = limit.residence
    code = made.code.instructions
    clocks, done, products, row, others = 0.0, 0.0, 0.0, 0.0, 0.0
    for loop in _loops(made, counts):
        turn = turn_of(loop, made, counts, held.warps, held.blocks, target, device)
        if turn is None:
            return None
        clocks += turn.clocks * _rounds(loop, counts, held, device)
        body = body_of(loop, made, counts)
        times = counts.issued[loop.header]
        here = [one for one in body if one.name in SETS]
        done += sum(_multiplied(one) for one in here) * times
        products += len(here) * times
        row += _follow(body) * times
        others += (len(body) - len(here)) * times
    if not done:
        return None
    whole = sum(_multiplied(one) * times for one, times in zip(code, counts.executed, strict=True) if one.name in SETS)
    alone = clocks * whole / done / (device.matrix.clock.value or 1.0)
    return Steadily(alone * held.loss, alone, row / products, others / products)


def _loops(made: Program, counts: Counts) -> Iterator[Loop]:
    """Those of which turns have products, and no loop inside does: what stands between tiles is not a turn of products."""
    code = made.code.instructions
    found = [loop for loop in made.flow.loops if any(code[at].name in SETS and counts.issued[at] > 0 for at in loop.body)]
    return (loop for loop in found if not any(other.body < loop.body for other in found))


def _rounds(loop: Loop, counts: Counts, held: Residence, device: Device) -> float:
    """Turns of all warps that a multiprocessor holds at once, one after the other, without the loss of the last wave."""
    together = held.warps * (counts.reached[loop.header] or 1.0) * (device.multiprocessors.value or 1.0)
    return counts.issued[loop.header] / together


def _multiplied(one: Instruction) -> int:
    made = product(one)
    return 0 if made is None else made.multiply_adds


def _follow(body: Sequence[Instruction]) -> int:
    """Products that follow another, the first of a turn the last one, with nothing that lanes do between."""
    first = next(at for at, one in enumerate(body) if one.name in SETS)
    found, follows = 0, True
    for one in (*body[first + 1 :], *body[: first + 1]):
        if one.name in SETS:
            found += follows
            follows = True
        elif unit(one) != "uniform" and one.name not in _NOTHING:
            follows = False
    return found
