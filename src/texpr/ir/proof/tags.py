"""Tags: claims about the events of a plan, as plain data. A search finds them; the proof does not trust them.

A tag is a claim to be proved about an event; a wrong one makes the proof fail. Events are numbered as by `reader.read`, the
program's statements as by `actions.actions`. Indices are values of the loops around a statement, outermost first, in terms of
the kernel's coordinates.
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
"""The indices of loops over copies."""


class Statement(Record):
    """The event executes the program's statement `action` with these indices, in program memory or in a partial sum. `inverse`:
    the coordinates of the event that execute a given instance, over the program's loops, and over the verifier's symbols where
    any value is right; empty if unknown. `partial`: the other instances of the event write holes."""

    action: int
    indices: tuple[Expr, ...]
    inverse: tuple[Expr, ...] = ()
    partial: bool = False


class Moved(Record):
    """The event copies an `element` of the buffer that `action` writes, before (`side` −1) or after (1) the loop that is inside
    the loops of `indices`. `inverse`: the coordinates that copy a given element, over `ELEMENTS` and the program's loops."""

    action: int
    indices: tuple[Expr, ...]
    side: int
    element: tuple[Expr, ...]
    inverse: tuple[Expr, ...] = ()


class Hole(Record):
    """The event writes a hole, which is never read, at the time of `action` with these indices; no such instance need exist."""

    action: int
    indices: tuple[Expr, ...]


class Step(Record):
    """The event initialises, copies or exchanges partial sums. `inverse`: the coordinates that write each element of a partial
    sum, over `ELEMENTS`."""

    inverse: tuple[Expr, ...] = ()


class Joined(Record):
    """The event combines a partial sum with another, or with program memory. Then it completes the sums `of` these statements,
    with the indices of the loops outside of the reduction. `inverse`: the coordinates that read each element of the partial
    sum."""

    update: Update
    of: tuple[Statement, ...] = ()
    inverse: tuple[Expr, ...] = ()


Tag: TypeAlias = Statement | Hole | Moved | Step | Joined


class Instance(Record):
    """A signal of `reading.signals` or a step of `reading.steps`, by number, at coordinates `at` (threads and loops), over
    those of the referring one, in the same block. `where`, if given: it exists only if these equal all coordinates of the
    referring one."""

    of: int
    at: tuple[Expr, ...]
    where: tuple[Expr, ...] = ()


class End(Record):
    """The step after which an event's effect is complete in its thread, and the steps in between that close groups; or the
    signal of a commit behind what its thread started, for whose phase others wait."""

    step: Instance
    groups: tuple[Instance, ...] = ()


class Parcel(Record):
    """The bytes of a phase by some copies: `bytes` for each point of a box with these extents. `copies`: candidates over the
    coordinates of the arrival and `TURNS`; the first that exists counts."""

    copies: tuple[Instance, ...]
    box: tuple[Expr, ...]
    bytes: Expr


class Turn(Record):
    """The relations of a signal to others at its barrier. Of several candidates, the first that exists counts.

    `begun`: the arrival of its phase; for an arrival, the predecessor, or the initialisation of the barrier. `seen`: the waits
    for its phase, in the thread that needs it complete; for an initialisation, fences. `parcels`: the bytes of an arrival's
    phase. `turn`: for a copy, the number of its parcel and the point of its box.
    """

    begun: tuple[Instance, ...] = ()
    seen: tuple[Instance, ...] = ()
    parcels: tuple[Parcel, ...] = ()
    turn: tuple[Expr, ...] = ()


class Tags(Record):
    """The tags of a plan's events and signals, by number; `ends`: where asynchronous events complete, or become visible."""

    events: tuple[Tag | None, ...]
    ends: tuple[tuple[End, ...], ...] = ()
    turns: tuple[Turn, ...] = ()


class Numbered(Record):
    """The names of numbered items of `plan`, for comments in the text: `events`, `statements`, `steps` and `signals`, in order;
    and the user's `combiners`, by name."""

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
