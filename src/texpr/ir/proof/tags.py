"""What each event of a plan is said to be: plain data, found by searching elsewhere, and never believed here.

A tag says what is to be proved of an event. One that is wrong makes that fail. Events are numbered as `reader.read` gives
them, statements of the program as `actions.actions` does; indices are of the loops around a statement, outermost first, in
coordinates of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym
from texpr.ir.program import Combiner, Update
from texpr.support.record import Record, field

ELEMENTS = tuple(Sym(f"element {at}") for at in range(8))
"""The subscripts of an element."""

TURNS = tuple(Sym(f"turn {at}") for at in range(8))
"""The turns of loops over copies."""


class Statement(Record):
    """It does the program's statement `action`, for these indices, in its memory or in a part of a sum. `inverse`: the event's
    coordinates, over the program's loops, at which a given instance is done, its own names for those that anyone may choose;
    none where that is not known. `partial`: elsewhere it writes holes."""

    action: int
    indices: tuple[Expr, ...]
    inverse: tuple[Expr, ...] = ()
    partial: bool = False


class Moved(Record):
    """It moves an `element` of what `action` writes, at a `side` of the outermost loop but `indices` around that: −1 before,
    1 behind. `inverse`: at which coordinates an element is moved, over `ELEMENTS` and the program's loops."""

    action: int
    indices: tuple[Expr, ...]
    side: int
    element: tuple[Expr, ...]
    inverse: tuple[Expr, ...] = ()


class Hole(Record):
    """It writes what nobody reads, at the time of `action` with these indices, of which the program need have none."""

    action: int
    indices: tuple[Expr, ...]


class Step(Record):
    """It begins, copies or exchanges parts of a sum. `inverse`: at which coordinates each element of a part is written, over
    `ELEMENTS`."""

    inverse: tuple[Expr, ...] = ()


class Joined(Record):
    """It joins a part into another, or into memory of the program: then it ends the sums `of` those statements, with the
    indices of the loops around those whose order is free. `inverse`: where each element of a part is taken."""

    update: Update
    of: tuple[Statement, ...] = ()
    inverse: tuple[Expr, ...] = ()


Tag: TypeAlias = Statement | Hole | Moved | Step | Joined


class Instance(Record):
    """One of `reading.signals` or `reading.steps`, by number, at threads and turns of loops, `at`, over the coordinates of what
    names it, in the same block; if all coordinates of that are `where`, should that be given."""

    of: int
    at: tuple[Expr, ...]
    where: tuple[Expr, ...] = ()


class End(Record):
    """Behind which step of its thread what an event does has come about, with these steps in between, which end groups."""

    step: Instance
    groups: tuple[Instance, ...] = ()


class Parcel(Record):
    """What comes to a phase: so many `bytes` in each turn of a box, from 0 on and of these extents. `copies`: what brings them,
    over the coordinates of the arrival and `TURNS`. The first that is there counts."""

    copies: tuple[Instance, ...]
    box: tuple[Expr, ...]
    bytes: Expr


class Turn(Record):
    """What a signal at a barrier has to do with others there. The first of some that is there counts.

    `begun`: the arrival whose phase it is of; of an arrival: the one before, or what made the barrier. `seen`: the waits for
    it, by the thread that looks; of what makes a barrier: fences. `parcels`: what comes to the phase of an arrival. `turn`:
    which of these a copy is of, by number, and in which turn of it.
    """

    begun: tuple[Instance, ...] = ()
    seen: tuple[Instance, ...] = ()
    parcels: tuple[Parcel, ...] = ()
    turn: tuple[Expr, ...] = ()


class Tags(Record):
    """The tags of a plan's events and signals, by number; and where copies of events end, or their writes are known."""

    events: tuple[Tag | None, ...]
    ends: tuple[tuple[End, ...], ...] = ()
    turns: tuple[Turn, ...] = ()


class Numbered(Record):
    """What tags of `plan` name by number, each in some words for people, in that order: `events` and `statements`, and the
    `steps` and `signals` of a reading; and the user's `combiners`, by name."""

    plan: str
    events: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    combiners: Mapping[str, Combiner] = field(default_factory=dict[str, Combiner])


__all__ = [
    "ELEMENTS",
    "TURNS",
    "End",
    "Hole",
    "Instance",
    "Joined",
    "Moved",
    "Numbered",
    "Parcel",
    "Statement",
    "Step",
    "Tag",
    "Tags",
    "Turn",
]
