"""How long a turn of a loop takes in which products go on by themselves: told by what is waited for, at the grain of products.

    start 512    lanes 40    start 512    wait 1    lanes 900    wait 0    lanes 200    meet

Each warpgroup goes through the parts of a turn in order. The matrix unit does products in the order in which they are started;
lanes of all warpgroups share the slots of issue, and the special units, which do exponentials; a wait ends when so many
products are left; warpgroups of a block meet. That lanes work while a product goes on follows from the waits alone. It is no
bound: the time of a turn that goes on steadily.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TypeAlias

from texpr.isa.cuda import WARPGROUP
from texpr.isa.speed import Device
from texpr.support.record import Mutable, Record, field

ISSUED, ALONE = 1.3, 2.0
"""Clocks of an instruction of lanes: that it keeps the slots of issue, as its unit has room less often; and until the next one
of the same warp. What steady turns of machine code have, of 1 to 4 warps a scheduler (docs/model.md)."""

SLICE = 16.0
"""Clocks after which another warpgroup has the slots of issue."""

TURNS = 8
"""That are gone through; the first half of them is not counted."""


class Lanes(Record):
    """What lanes do: `issued` clocks in which their instructions are issued, `clocks` that they take one behind the other;
    `special`: clocks in which the special units have work of them."""

    issued: float
    clocks: float
    special: float = 0.0


class Start(Record):
    """A product that goes on for so many clocks."""

    clocks: float


class Wait(Record):
    """Until at most so many products are left."""

    pending: int


class Meet(Record):
    """All warpgroups of a block."""


def lanes(instructions: float, special: float = 0.0) -> Lanes:
    """So many instructions of a warp, with which the special units are busy for so many clocks."""
    return Lanes(instructions * ISSUED, max(instructions * ALONE, special), special)


def joined(every: Iterable[Lanes]) -> Lanes:
    """One behind the other, with nothing to wait for in between: what special units do goes on beside what follows."""
    each = tuple(every)
    return lanes(sum(one.issued for one in each) / ISSUED, sum(one.special for one in each))


def special_clocks(instructions: float, device: Device) -> float:
    """For which the special units of a multiprocessor are busy with so many instructions of each warp of a warpgroup."""
    return instructions * WARPGROUP / (device.rates.special.value or inf)


Part: TypeAlias = Lanes | Start | Wait | Meet


class Ring(Record):
    """Of slots that an engine fills ahead, one a turn: for so many `clocks`, and `latency` more until all of it is there."""

    slots: int
    clocks: float
    latency: float


class Span(Record):
    """From `begin` to `end` a warpgroup `does` something in a turn: "lanes", "product" (the matrix unit, for it), "wait",
    "meet"; "full": it waits for its slot; "release": it is done with that, at `end`. Of a block "copy": its slot is filled."""

    group: int
    does: str
    turn: int
    begin: float
    end: float


class _Copies(Mutable):
    """The engine: when what turns of blocks use is there, and how many warpgroups are to be done with a slot."""

    ring: Ring
    groups: int
    free: float = 0.0
    arrived: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    released: dict[tuple[int, int], list[float]] = field(default_factory=dict[tuple[int, int], list[float]])

    def arrives(self, block: int, turn: int, spans: list[Span]) -> float | None:
        """When a turn's slot is full; None where nobody knows yet when it will be empty."""
        if (block, turn) not in self.arrived:
            last = self.released.get((block, turn - self.ring.slots), [])
            if turn >= self.ring.slots and len(last) < self.groups:
                return None
            begin = max(self.free, *last) if last else self.free
            self.free = begin + self.ring.clocks
            self.arrived[block, turn] = self.free + self.ring.latency
            spans.append(Span(block * self.groups, "copy", turn, begin, self.arrived[block, turn]))
        return self.arrived[block, turn]


class _Group(Mutable):
    """A warpgroup: `at` which part it is, how much of that is `left`, when it is `ready`, when its products are done, in which
    turns they are, and how many of them it has waited for."""

    block: int
    at: int = 0
    left: float = 0.0
    turns: int = 0
    ready: float = 0.0
    products: list[float] = field(default_factory=list[float])
    of: list[int] = field(default_factory=list[int])
    awaited: int = 0
    meets: bool = False


def period(parts: Sequence[Part], groups: int, blocks: int) -> float:
    """The clocks of a turn of all of so many warpgroups of each of so many blocks, which a multiprocessor holds."""
    late, early = (_run(parts, groups, blocks, turns) for turns in (TURNS, TURNS // 2))
    return (late - early) / (TURNS - TURNS // 2)


def trace(parts: Sequence[Part], groups: int, blocks: int, ring: Ring | None, turns: int = TURNS) -> tuple[Span, ...]:
    """What all warpgroups of a multiprocessor do in so many turns, by when it begins; with copies, where there is a ring."""
    spans: list[Span] = []
    _run(parts, groups, blocks, turns, spans, None if ring is None else _Copies(ring, groups))
    return tuple(sorted(spans, key=lambda each: (each.begin, each.group)))


def _run(
    parts: Sequence[Part],
    groups: int,
    blocks: int,
    turns: int,
    spans: list[Span] | None = None,
    copies: _Copies | None = None,
) -> float:
    every = [_Group(at // groups, left=_issued(parts[0])) for at in range(groups * blocks)]
    noted: list[Span] = [] if spans is None else spans
    issue = matrix = special = 0.0
    while running := [each for each in every if each.turns < turns and not each.meets]:
        group = min(running, key=lambda each: each.ready)
        part, now, number = parts[group.at], group.ready, every.index(group)
        if copies is not None and isinstance(part, Start) and not _has_slot(group, number, copies, every, noted):
            continue
        if isinstance(part, Lanes) and part.special and special > now:
            group.ready = special
            continue
        match part:
            case Lanes(issued, clocks):
                slice = min(SLICE, group.left)
                begins = max(issue, now)
                special = begins + slice * part.special / issued if part.special else special
                issue = begins + slice
                group.left -= slice
                group.ready = begins + (slice * clocks / issued if issued else clocks)
                noted.append(Span(number, "lanes", group.turns, begins, group.ready))
            case Start(clocks):
                begins = max(matrix, group.ready)
                matrix = begins + clocks
                group.products.append(matrix)
                group.of.append(group.turns)
                noted.append(Span(number, "product", group.turns, begins, matrix))
            case Wait(pending):
                count = max(0, len(group.products) - pending)
                group.ready = max(now, *group.products[:count]) if count else now
                noted.append(Span(number, "wait", group.turns, now, group.ready))
                _released(group, number, count, copies, noted)
            case Meet():
                group.meets = True
                noted.append(Span(number, "meet", group.turns, now, now))
        if group.left <= 0:
            group.at = (group.at + 1) % len(parts)
            group.turns += not group.at
            group.left = _issued(parts[group.at])
        _meet(every, group.block, turns)
    return max(each.ready for each in every)


def _has_slot(group: _Group, number: int, copies: _Copies, every: Sequence[_Group], noted: list[Span]) -> bool:
    """Whether what a product reads is there, or it is known when: then the warpgroup waits for it; otherwise others go on."""
    there = copies.arrives(group.block, group.turns, noted)
    if there is None:
        later = [each.ready for each in every if each is not group and each.ready >= group.ready]
        group.ready = min(later, default=group.ready) + SLICE
        return False
    if there > group.ready:
        noted.append(Span(number, "full", group.turns, group.ready, there))
        group.ready = there
    return True


def _released(group: _Group, number: int, count: int, copies: _Copies | None, noted: list[Span]) -> None:
    """Notes which turns' slots a warpgroup is done with: of whose last product it has waited."""
    for at in range(group.awaited, count):
        turn, last = group.of[at], at + 1 == len(group.of) or group.of[at + 1] != group.of[at]
        if last:
            noted.append(Span(number, "release", turn, group.ready, group.ready))
        if last and copies is not None:
            copies.released.setdefault((group.block, turn), []).append(group.ready)
    group.awaited = max(group.awaited, count)


def _issued(part: Part) -> float:
    return part.issued if isinstance(part, Lanes) else 0.0


def _meet(every: Sequence[_Group], block: int, turns: int) -> None:
    """Warpgroups go on where the last of their block has come."""
    mine = [each for each in every if each.block == block]
    if all(each.meets for each in mine):
        then = max(each.ready for each in mine)
        for each in mine:
            each.meets, each.ready = False, then
