"""Where the uses of a slot end: the first point behind products of a warpgroup at which all of them are known to be done.

    start s …; commit                   start s …; commit
    start acc …; commit                 start acc …; commit
    wait_warpgroup 1            →       wait_warpgroup 1; release what s read
    …                                   …
    wait_warpgroup 0                    wait_warpgroup 0; release what acc read

Groups complete in order: behind a wait that leaves n of them, those are done behind which n others were committed. Where no
wait is there for other reasons, one is needed at the end of the list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from texpr.ir.steps import Branch, Loop, Node, Step, below, leaves
from texpr.lowering.build.paths import ProgramPoint, StepList, lists
from texpr.lowering.sync.warpgroup import Run
from texpr.support.record import Record


class Uses(Record, eq=False):
    """The body of a loop in the tree `nodes`; the groups that are `started` in it, and how many may go on behind each wait."""

    nodes: tuple[Node, ...]
    body: tuple[Node, ...]
    started: tuple[Run, ...]
    waits: Mapping[ProgramPoint, int]

    @property
    def are_one(self) -> bool:
        """Whether a turn starts one group."""
        inside = {*leaves(self.body)}
        return sum(not inside.isdisjoint(run.steps) for run in self.started) == 1

    def ends(self, steps: Collection[Step]) -> Mapping[ProgramPoint, bool] | None:
        """A point behind `steps` in each list that starts some, with whether they are known to be done there; None where a turn
        may pass several of these lists, or one of them several times."""
        found = dict[int, list[Run]]()
        for run in self.started:
            if not {*steps}.isdisjoint(run.steps):
                found.setdefault(run.number, []).append(run)
        own = {each.number: each for each in lists(self.nodes) if each.number in found}
        firsts = [each[0].steps[0] for each in found.values()]
        again = [node for node in _nodes(self.body) if isinstance(node, Loop)]
        if any(each.nodes is inner.nodes for each in own.values() for loop in again for inner in lists(loop.body)):
            return None
        if not all(self._exclude(one, other) for one, other in combinations(firsts, 2)):
            return None
        return dict(self._end(own[number], mine) for number, mine in found.items())

    def _exclude(self, one: Step, other: Step) -> bool:
        """Whether two steps are in the two arms of a branch."""
        branches = (node for node in _nodes(self.body) if isinstance(node, Branch))
        arms = (({*leaves(each.then)}, {*leaves(each.orelse)}) for each in branches)
        return any((one in then and other in orelse) or (other in then and one in orelse) for then, orelse in arms)

    def _end(self, own: StepList, mine: Sequence[Run]) -> tuple[ProgramPoint, bool]:
        behind = {id(run): own.nodes.index(run.last) for run in self.started if run.number == own.number}
        last = max(behind[id(run)] for run in mine)
        for at in range(last, len(own.nodes)):
            left = self.waits.get((own.number, at))
            if left is not None and sum(last < each <= at for each in behind.values()) >= left:
                return (own.number, at), True
        return (own.number, len(own.nodes) - 1), False


def _nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Every node of a tree."""
    for node in nodes:
        yield node
        for inner in below(node):
            yield from _nodes(inner)
