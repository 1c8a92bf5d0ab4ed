"""Which dependences others imply: every barrier that covers those covers these.

That is so for pairs of steps of one list, the one pair within the other. Of pairs in order only those are kept within which no
other lies; their sources and their sinks rise together, so that one is found by bisection.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from texpr.ir import program as ir
from texpr.ir.steps import Step
from texpr.lowering.build.team import Around
from texpr.lowering.dependences.conflict import Conflict, End
from texpr.support.record import Mutable, field


class _Innermost(Mutable):
    """Pairs of steps, by number."""

    sources: list[int] = field(default_factory=list[int])
    sinks: list[int] = field(default_factory=list[int])

    def within(self, source: int, sink: int) -> bool:
        """Whether a pair lies within this one."""
        at = bisect_left(self.sources, source)
        return at < len(self.sources) and self.sinks[at] <= sink

    def beside(self, source: int, sink: int) -> bool:
        """Whether a pair begins behind this source, or ends before this sink."""
        return bool(self.sources) and (self.sources[-1] >= source or self.sinks[0] <= sink)

    def add(self, source: int, sink: int) -> None:
        if self.within(source, sink):
            return
        end = bisect_right(self.sources, source)
        start = bisect_left(self.sinks, sink, 0, end)
        self.sources[start:end], self.sinks[start:end] = [source], [sink]


class Implied(Mutable):
    """Dependences that are covered. `around`: where each step lies."""

    around: Mapping[Step, Around]
    _found: dict[tuple[int, ir.Seq | None, bool], _Innermost] = field(
        default_factory=dict[tuple[int, "ir.Seq | None", bool], _Innermost]
    )

    def add(self, near: Conflict) -> None:
        """`near` is covered by a barrier that joins all whom its ends may lie in."""
        where = self._list(near)
        if where is not None:
            for crosses in (False, True) if near.crosses else (False,):
                innermost = self._found.setdefault((where, near.carrier, crosses), _Innermost())
                innermost.add(near.source.order, near.sink.order)

    def has(self, far: Conflict) -> bool:
        """Whether what covers others covers `far`; one that crosses blocks, only what covers others that do."""
        where, ends = self._list(far), (far.source.order, far.sink.order)
        if where is None:
            return False
        same = self._found.get((where, far.carrier, far.crosses))
        if same is not None and same.within(*ends):
            return True
        once = self._found.get((where, None, far.crosses))
        innermost = self.around[far.source.leaf].loops[-1:] == (far.carrier,)
        return far.carrier is not None and innermost and once is not None and once.beside(*ends)

    def in_one_list(self, ends: Sequence[End]) -> bool:
        """Whether all of `ends` are of one block, and of one list with no loop around: their order says what implies what."""
        lists = {self.around[end.leaf].list for end in ends}
        return len(lists) == 1 and not any(self.around[end.leaf].loops or end.crosses for end in ends)

    def reaches(self, source: End, sink: End) -> bool:
        """Whether these two ends, and `source` with any sink behind this one, are covered; for ends `in_one_list`."""
        same = self._found.get((self.around[source.leaf].list, None, False))
        return same is not None and same.within(source.order, sink.order)

    def _list(self, conflict: Conflict) -> int | None:
        """The list that holds both ends."""
        one, other = (self.around[end.leaf].list for end in (conflict.source, conflict.sink))
        return one if one == other else None
