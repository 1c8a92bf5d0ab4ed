"""Implied dependences: every barrier that covers one pair of steps also covers another.

A pair of steps of one list implies each pair that encloses it. Only innermost pairs are stored; both their sources and their
sinks are increasing, so that a lookup is a bisection.
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
    """The innermost pairs of steps, by number."""

    sources: list[int] = field(default_factory=list[int])
    sinks: list[int] = field(default_factory=list[int])

    def within(self, source: int, sink: int) -> bool:
        """Whether a stored pair is enclosed by this one."""
        at = bisect_left(self.sources, source)
        return at < len(self.sources) and self.sinks[at] <= sink

    def beside(self, source: int, sink: int) -> bool:
        """Whether a stored pair begins at or after this source, or ends at or before this sink."""
        return bool(self.sources) and (self.sources[-1] >= source or self.sinks[0] <= sink)

    def add(self, source: int, sink: int) -> None:
        if self.within(source, sink):
            return
        end = bisect_right(self.sources, source)
        start = bisect_left(self.sinks, sink, 0, end)
        self.sources[start:end], self.sinks[start:end] = [source], [sink]


class Implied(Mutable):
    """The dependences that are already covered. `around`: the position of each step in the tree."""

    around: Mapping[Step, Around]
    _found: dict[tuple[int, ir.Seq | None, bool], _Innermost] = field(
        default_factory=dict[tuple[int, "ir.Seq | None", bool], _Innermost]
    )

    def add(self, near: Conflict) -> None:
        """Records that `near` is covered by a barrier for all threads that its ends may be executed by."""
        where = self._list(near)
        if where is not None:
            for crosses in (False, True) if near.crosses else (False,):
                innermost = self._found.setdefault((where, near.carrier, crosses), _Innermost())
                innermost.add(near.source.order, near.sink.order)

    def has(self, far: Conflict) -> bool:
        """Whether `far` is implied; one that crosses blocks is implied only by dependences that do."""
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
        """Whether all of `ends` are in one block and one list outside of loops: then their order alone determines
        implication."""
        lists = {self.around[end.leaf].list for end in ends}
        return len(lists) == 1 and not any(self.around[end.leaf].loops or end.crosses for end in ends)

    def reaches(self, source: End, sink: End) -> bool:
        """Whether these two ends, and `source` with any later sink, are covered; for ends `in_one_list`."""
        same = self._found.get((self.around[source.leaf].list, None, False))
        return same is not None and same.within(source.order, sink.order)

    def _list(self, conflict: Conflict) -> int | None:
        """The list that contains both ends, None if there is none."""
        one, other = (self.around[end.leaf].list for end in (conflict.source, conflict.sink))
        return one if one == other else None
