"""How long a turn of a loop takes in which products go on by themselves: told by what is waited for, at the grain of products.

    start 512    lanes 40    start 512    wait 1    lanes 900    wait 0    lanes 200    meet

Each warpgroup goes through the parts of a turn in order. The matrix unit does products in the order in which they are started;
lanes of all warpgroups share the slots of issue; a wait ends when so many products are left; warpgroups of a block meet. That
lanes work while a product goes on follows from the waits alone. It is no bound: the time of a turn that goes on steadily.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from texpr.support.record import Mutable, Record, field

ISSUED, ALONE = 1.2, 1.3
"""Clocks of an instruction of lanes: that it keeps the slots of issue, as its unit has room less often; and until the next one
of the same warp. What steady turns of machine code have, of 1 to 4 warps a scheduler (docs/model.md)."""

SLICE = 16.0
"""Clocks after which another warpgroup has the slots of issue."""

TURNS = 8
"""That are gone through; the first half of them is not counted."""


class Lanes(Record):
    """What lanes do: `issued` clocks in which their instructions are issued, `clocks` that they take one behind the other."""

    issued: float
    clocks: float


class Start(Record):
    """A product that goes on for so many clocks."""

    clocks: float


class Wait(Record):
    """Until at most so many products are left."""

    pending: int


class Meet(Record):
    """All warpgroups of a block."""


def lanes(instructions: float) -> Lanes:
    """So many instructions of a warp."""
    return Lanes(instructions * ISSUED, instructions * ALONE)


Part: TypeAlias = Lanes | Start | Wait | Meet


class _Group(Mutable):
    """A warpgroup: `at` which part it is, how much of that is `left`, when it is `ready`, when its products are done."""

    block: int
    at: int = 0
    left: float = 0.0
    turns: int = 0
    ready: float = 0.0
    products: list[float] = field(default_factory=list[float])
    meets: bool = False


def period(parts: Sequence[Part], groups: int, blocks: int) -> float:
    """The clocks of a turn of all of so many warpgroups of each of so many blocks, which a multiprocessor holds."""
    late, early = (_run(parts, groups, blocks, turns) for turns in (TURNS, TURNS // 2))
    return (late - early) / (TURNS - TURNS // 2)


def _run(parts: Sequence[Part], groups: int, blocks: int, turns: int) -> float:
    every = [_Group(at // groups, left=_issued(parts[0])) for at in range(groups * blocks)]
    issue = matrix = 0.0
    while running := [each for each in every if each.turns < turns and not each.meets]:
        group = min(running, key=lambda each: each.ready)
        part, now = parts[group.at], group.ready
        match part:
            case Lanes(issued, clocks):
                slice = min(SLICE, group.left)
                begins = max(issue, now)
                issue = begins + slice
                group.left -= slice
                group.ready = begins + (slice * clocks / issued if issued else clocks)
            case Start(clocks):
                matrix = max(matrix, now) + clocks
                group.products.append(matrix)
            case Wait(pending):
                done = group.products[: max(0, len(group.products) - pending)]
                group.ready = max(now, *done) if done else now
            case Meet():
                group.meets = True
        if group.left <= 0:
            group.at = (group.at + 1) % len(parts)
            group.turns += not group.at
            group.left = _issued(parts[group.at])
        _meet(every, group.block, turns)
    return max(each.ready for each in every)


def _issued(part: Part) -> float:
    return part.issued if isinstance(part, Lanes) else 0.0


def _meet(every: Sequence[_Group], block: int, turns: int) -> None:
    """Warpgroups go on where the last of their block has come."""
    mine = [each for each in every if each.block == block]
    if all(each.meets for each in mine):
        then = max(each.ready for each in mine)
        for each in mine:
            each.meets, each.ready = False, then
