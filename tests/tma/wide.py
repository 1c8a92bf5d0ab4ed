"""Random schedules that nobody would write with care: merges against memory order, splits whose outer part is too long."""

from __future__ import annotations

from math import prod
from random import Random

from tests.tma.generate import POINTS, Maker, Schedule

from texpr.affine.expr import expr


def schedule(seed: int) -> Schedule:
    """A schedule with few points."""
    random = Random(seed)
    while True:
        made = _Wide(random).schedule()
        if 0 < prod(leaf.extent.constant for leaf in made.memory.graph.leaves) <= POINTS:
            return made


class _Wide(Maker):
    def __init__(self, random: Random):
        super().__init__(random)
        sizes = [d.extent.constant for d in self.graph.logical]
        strides, step = [0] * len(sizes), 1
        for at in random.sample(range(len(sizes)), len(sizes)):
            strides[at] = step
            step = step * sizes[at] + random.choice((0, 0, 0, 1, 4))
        self.strides = tuple(map(expr, strides))
        self.extent = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))

    def view(self) -> None:
        leaves = [leaf.sym.name for leaf in self.graph.leaves]
        kind = self.random.random()
        if kind < 0.35 and len(leaves) > 1:
            self.graph = self.graph.merge(*self.random.sample(leaves, 2), self.name())
        elif kind < 0.5:
            self._cut(self.random.choice(leaves), 4)
        else:
            super().view()

    def box(self, name: str) -> None:
        extent = self.graph[name].extent.constant
        kind = self.random.random()
        if kind < 0.15:
            self.loops.append(name)
            return
        if kind < 0.8:
            outer, name = self._cut(name, min(extent + 2, 6))
            self.loops.append(outer)
        if self.random.random() < 0.35:
            apart = list(self._cut(name, 5))
            self.loops.append(apart.pop(self.random.randrange(2)))
            (name,) = apart
        self.bulk.append(name)

    def within(self) -> None:
        if len(self.bulk) > 1 and self.random.random() < 0.6:
            super().within()
        elif self.bulk:
            at = self.random.randrange(len(self.bulk))
            outer, inner = self._cut(self.bulk[at], 4)
            self.bulk[at : at + 1] = [outer, inner]
            if self.random.random() < 0.3:
                self.loops.append(self.bulk.pop(at))

    def _cut(self, name: str, most: int) -> tuple[str, str]:
        """A split by a factor up to `most`, of the inner part or of the outer one, which may then be longer than there is."""
        names = (self.name(), self.name())
        self.graph = self.graph.split(name, self.random.randint(1, most), names, outer=self.random.random() < 0.35)
        return names
