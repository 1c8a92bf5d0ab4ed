"""Updates of `par … reduce(…)`: iterations that update the same element, combined in the order of the sequential program.

All iterations of a `par` run each statement together, so applying each update when its statement runs would combine rounded
sums in the wrong order. Such updates are deferred: recorded, sorted by iteration at the end of each `par` (stably: within an
iteration they are in order already) and handed to the `par` around it; the outermost one with `reduce` applies them. The
delay is not observable: other iterations may not read an element that is reduced into, and before an iteration reads an
element of its own, the recorded updates of that element are applied.

Updates whose order makes no difference (integers, max, min) are applied at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from texpr.interp.combine import Combine, in_any_order, in_order, is_free
from texpr.interp.dtypes import Array
from texpr.interp.lanes import Column, Lanes
from texpr.interp.memory import Memory
from texpr.ir.program import Bind, Par, walk
from texpr.ir.value import Buffer
from texpr.support.record import Record

LANES = 1 << 16
"""The most lanes that run together: enough to amortise a step, few enough for their columns to stay in the cache."""
NOTING = 1 << 13
"""The most lanes while updates are deferred: a `seq` inside records an update for each lane and step."""


class Update(Record):
    """How to apply updates to `memories`, with `ufunc.at` if that is given."""

    kind: object
    memories: tuple[Memory, ...]
    combine: Combine
    ufunc: np.ufunc | None = None

    def meets(self, other: Update) -> bool:
        """Whether updates of two iterations may be of one element; otherwise each element belongs to one iteration."""
        return self.kind == other.kind and self.memories == other.memories

    def in_order(self, places: Sequence[Array], values: Sequence[Array]) -> None:
        """Applies them in sequential order."""
        if self.ufunc is not None:
            with np.errstate(all="ignore"):
                self.ufunc.at(self.memories[0].data, places[0], values[0])
        else:
            in_order([m.data for m in self.memories], places, values, self.combine)

    def in_any_order(self, places: Sequence[Array], values: Sequence[Array]) -> None:
        """Applies them in whatever order is fastest."""
        in_any_order([m.data for m in self.memories], places, values, self.combine)


class _Note(Record):
    """Recorded updates: the lane of the innermost recording `par` that made each, and its place and value for each target."""

    update: Update
    lanes: Array
    places: tuple[Array, ...]
    values: tuple[Array, ...]

    def only(self, which: Array) -> _Note:
        places, values = (tuple(x[which] for x in each) for each in (self.places, self.values))
        return _Note(self.update, self.lanes[which], places, values)


class Meetings:
    """The buffers that iterations reduce into at present, and the recorded updates."""

    def __init__(self) -> None:
        self._free: set[Buffer] = set()
        self._noted: dict[Buffer, Par] = {}  # and the outermost `par` that reduces into each
        self._levels: list[tuple[Par, list[_Note]]] = []

    @contextmanager
    def inside(self, par: Par) -> Generator[int]:
        """Context manager for the iterations of `par`; gives how many may run together."""
        fresh = [b for b in par.reduce if b not in self._free and b not in self._noted]
        free = {b for b in fresh if _is_free(b, par)}
        noted = [b for b in fresh if b not in free]
        self._free |= free
        self._noted.update(dict.fromkeys(noted, par))
        noting = bool(self._noted)
        if noting:
            self._levels.append((par, []))
        yield NOTING if noting else LANES
        if noting:
            self._levels.pop()
        self._free -= free
        for buffer in noted:
            del self._noted[buffer]

    def meets(self, buffer: Buffer) -> bool:
        """Whether two lanes may update the same element of `buffer`."""
        return buffer in self._free or buffer in self._noted

    def update(self, update: Update, lanes: Lanes, places: Sequence[Array], values: Sequence[Array]) -> None:
        """Applies the updates of these lanes, now or later."""
        for memory, place in zip(update.memories, places, strict=True):
            self.settle(memory.buffer, place, update)
        if any(memory.buffer in self._noted for memory in update.memories):
            par, notes = self._levels[-1]
            notes.append(_Note(update, np.asarray(lanes[par]), tuple(places), tuple(values)))
        else:
            update.in_any_order(places, values)

    def end(self, lanes: Lanes) -> None:
        """`lanes` have finished their iterations of the innermost `par`: hands over or applies what they recorded."""
        if not self._levels or not self._levels[-1][1]:
            return
        par, notes = self._levels[-1]
        for note in _by_lane(notes):
            if all(self._noted.get(m.buffer, par) is par for m in note.update.memories):
                note.update.in_order(note.places, note.values)
            else:
                outer, waiting = self._levels[-2]
                waiting.append(_Note(note.update, np.asarray(lanes[outer])[note.lanes], note.places, note.values))
        notes.clear()

    def settle(self, buffer: Buffer, places: Column, update: Update | None = None) -> None:
        """Applies the updates recorded for these elements, before an iteration reads, writes or updates them with another
        operator."""
        for _, notes in self._levels:
            for at, note in enumerate(notes):
                if update is not None and note.update.meets(update):
                    continue
                due = np.zeros(len(note.lanes), np.bool_)
                for memory, noted in zip(note.update.memories, note.places, strict=True):
                    if memory.buffer is buffer:
                        due |= np.isin(noted, places)
                if due.any():
                    now = note.only(np.flatnonzero(due))
                    now.update.in_order(now.places, now.values)
                    notes[at] = note.only(np.flatnonzero(~due))


def _is_free(buffer: Buffer, par: Par) -> bool:
    """Whether the order of updates of `buffer` in `par` makes no difference. Of different kinds, no two are of one element."""
    binds = (s for s in walk(par.body) if isinstance(s, Bind) and s.update is not None)
    return all(is_free(b.update, b.targets) for b in binds if any(t.buffer is buffer for t in b.targets))


def _by_lane(notes: Sequence[_Note]) -> Iterator[_Note]:
    """The records of each kind in the order of the lanes, and of each lane in the order in which it made them."""
    groups: defaultdict[tuple[object, tuple[Memory, ...]], list[_Note]] = defaultdict(list)
    for note in notes:
        groups[note.update.kind, note.update.memories].append(note)
    for group in groups.values():
        lanes = np.concatenate([note.lanes for note in group])
        places, values = (
            tuple(map(np.concatenate, zip(*parts, strict=True)))
            for parts in ([note.places for note in group], [note.values for note in group])
        )
        yield _Note(group[0].update, lanes, places, values).only(np.argsort(lanes, kind="stable"))
