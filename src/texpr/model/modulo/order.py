"""The code of a modulo schedule: in which order a team does a turn's operations, and which of them are for a turn before.

A team does one thing after the other, and what it starts (a product, a copy) goes on by itself. So the code of a turn has the
operations in the order in which the team gets to them: what it does itself when it is done, as that is not interrupted, and
what it starts before the next thing it does. Where a turn of the code begins is free; it begins where least is late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from texpr.model.modulo.search import Found
from texpr.model.modulo.turn import Operation, Turn
from texpr.model.turns import Lanes, Meet, Part, Start, Wait, joined
from texpr.support.record import Record


class Placed(Record):
    """An operation, by number, in the code of a turn: for the turn `late` turns before."""

    operation: int
    late: int


Code: TypeAlias = tuple[Placed, ...]
"""A turn, in order."""


def is_own(operation: Operation) -> bool:
    """Whether a team does it itself, one thing after the other."""
    return any(use.own for use in operation.uses)


def ordered(turn: Turn, found: Found, numbers: Sequence[int]) -> Code:
    """The code of a turn that has these operations."""
    period = found.interval * turn.teams
    reached = {at: _reached(turn.operations[at], found.begins[at]) for at in numbers}
    return min((_cut(reached, period, reached[first]) for first in numbers), key=_lateness)


Reached: TypeAlias = tuple[Fraction, bool]
"""When a team gets to an operation; of two at the same time, what ends then comes before what begins."""


def _reached(operation: Operation, begin: Fraction) -> Reached:
    return (begin + operation.clocks, False) if is_own(operation) else (begin, True)


def _cut(reached: Mapping[int, Reached], period: Fraction, begin: Reached) -> Code:
    """A turn that begins with one of its operations."""
    late = dict[int, int]()
    for at, (clock, starts) in reached.items():
        whole, rest = divmod(clock - begin[0], period)
        late[at] = int(whole) - (rest == 0 and starts < begin[1])
    least = min(late.values())
    places = sorted(reached, key=lambda at: (reached[at][0] - late[at] * period, reached[at][1], at))
    return tuple(Placed(at, late[at] - least) for at in places)


def _lateness(code: Code) -> tuple[int, int, list[int]]:
    return max(each.late for each in code), sum(each.late for each in code), [each.operation for each in code]


def parts_of(turn: Turn, code: Code, lanes: Sequence[Lanes], meets: bool) -> tuple[Part, ...]:
    """What a team does in a turn of this code, with the waits that its dependences need. `lanes`: what each operation takes
    that a team does itself; `meets`: whether teams of a block meet in each turn."""
    place = {each.operation: at for at, each in enumerate(code)}
    starts = [at for at, each in enumerate(code) if not is_own(turn.operations[each.operation])]
    found: list[Part] = []
    for at, each in enumerate(code):
        operation = turn.operations[each.operation]
        if not is_own(operation):
            found.append(Start(float(operation.clocks)))
            continue
        pending = [
            _since(starts, place[other.before], at, each.late + other.turns - code[place[other.before]].late)
            for other in turn.dependences
            if other.after == each.operation and place.get(other.before) in starts
        ]
        if pending and _waits(found, min(pending)):
            found.append(Wait(min(pending)))
        before = found.pop() if found and isinstance(found[-1], Lanes) else Lanes(0.0, 0.0)
        found.append(joined((before, lanes[each.operation])) if isinstance(before, Lanes) else before)
    return (*found, Meet()) if meets else tuple(found)


def _waits(found: Sequence[Part], pending: int) -> bool:
    """Whether as many products may be left since the last wait."""
    left = 0
    for part in reversed(found):
        match part:
            case Start():
                left += 1
            case Wait(others):
                return left + others > pending
            case _:
                pass
    return True


def _since(starts: Sequence[int], start: int, now: int, turns: int) -> int:
    """How many are started behind one, so many turns ago, until now."""
    return turns * len(starts) + sum(at < now for at in starts) - sum(at <= start for at in starts)
