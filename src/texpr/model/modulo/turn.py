"""A turn of a loop at the grain of tile operations: what each keeps busy, and which waits for which.

    copy K ─▶ S = Q · Kᵀ ─▶ exponentials ─▶ O += P · V ◀─ copy V
                  ▲               │              │
                  └──── a turn ───┘◀─── a turn ──┘

*Teams* go through the same turns, each by itself: warpgroups of all blocks that a multiprocessor holds. They take turns at
equal distances, so that all of them together are one stream, in which a turn begins every `interval` clocks; of a team every
`teams`-th turn of the stream is the next one. What is carried from turn to turn is carried over so many turns of the stream.
"""

from __future__ import annotations

from texpr.support.record import Record


class Use(Record):
    """Of a unit, which does one operation at a time, for so many clocks. `own`: each team has such a unit for itself."""

    unit: str
    clocks: int
    own: bool = False


class Operation(Record):
    """A tile operation. `uses`: what it keeps busy from its beginning on. `clocks`: until what it gives is there."""

    name: str
    uses: tuple[Use, ...]
    clocks: int


class Dependence(Record):
    """`after`, so many `turns` of a team later, begins when `before` has been under way for so many `clocks`; both are numbers
    of operations. `together`: for the `before` of all teams of a block."""

    before: int
    after: int
    clocks: int
    turns: int = 0
    together: bool = False


class Turn(Record):
    """`teams`: that go through such turns on a multiprocessor, of which a block has so many as `together`."""

    operations: tuple[Operation, ...]
    dependences: tuple[Dependence, ...]
    teams: int = 1
    together: int = 1

    def distance(self, each: Dependence) -> int:
        """Turns of the stream over which something is carried: for the first team of a block from its last one."""
        return self.teams * each.turns - (self.together - 1 if each.together else 0)

    @property
    def units(self) -> tuple[str, ...]:
        """What operations keep busy, by name."""
        return tuple(dict.fromkeys(use.unit for each in self.operations for use in each.uses))
