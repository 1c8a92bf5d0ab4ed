"""Random schedules of a consumer: views, boxes, strided tiles, loops over coordinates; sizes are small numbers."""

from __future__ import annotations

from math import prod
from random import Random

from texpr.affine.expr import expr, sym
from texpr.domain import DomainGraph
from texpr.domain.contiguity import Memory
from texpr.domain.transforms.merge import Merge
from texpr.domain.transforms.resize import Resize
from texpr.domain.transforms.split import Split
from texpr.domain.transforms.swizzle import Shift
from texpr.support.record import Record, replace

POINTS = 1500
"""Leaf points that a schedule may have."""


class Schedule(Record):
    """The leaves `bulk` are what the hardware runs; `extent`: elements of memory that the tensor spans."""

    memory: Memory
    bulk: tuple[str, ...]
    extent: int


def schedule(seed: int) -> Schedule:
    """A schedule with few points."""
    random = Random(seed)
    while True:
        made = _Maker(random).schedule()
        if 0 < prod(leaf.extent.constant for leaf in made.memory.graph.leaves) <= POINTS:
            return made


class _Maker:
    def __init__(self, random: Random):
        self._random = random
        self._count = 0
        rank = random.choice((1, 2, 2, 3))
        sizes = [random.randint(1, 12 if rank < 3 else 6) for _ in range(rank)]
        strides = [1]
        for size in reversed(sizes[1:]):
            strides.append(strides[-1] * size + random.choice((0, 0, 0, 1, 4)))
        self._strides = tuple(map(expr, reversed(strides)))
        self._extent = 1 + sum((n - 1) * s for n, s in zip(sizes, reversed(strides), strict=True))
        self._graph = DomainGraph.of(*((f"x{k}", n) for k, n in enumerate(sizes)))
        self._loops: list[str] = []
        self._bulk: list[str] = []

    def schedule(self) -> Schedule:
        for _ in range(self._random.choice((0, 0, 1, 2))):
            self._view()
        for leaf in tuple(self._graph.leaves):
            self._box(leaf.sym.name)
        for _ in range(self._random.choice((0, 1, 2, 3))):
            self._loop()
        if self._random.random() < 0.4:
            self._within()
        self._random.shuffle(self._loops)
        if self._random.random() < 0.05:
            self._random.shuffle(self._bulk)
        graph = self._graph
        leaves = tuple(graph[name] for name in (*self._loops, *self._bulk))
        memory = Memory(DomainGraph(graph.logical, graph.transforms, leaves), self._strides)
        return Schedule(memory, tuple(self._bulk), self._extent)

    def _name(self) -> str:
        self._count += 1
        return f"a{self._count}"

    def _view(self) -> None:
        leaves = self._graph.leaves
        kind = self._random.random()
        if kind < 0.4 and len(leaves) > 1:
            at = self._random.randrange(len(leaves) - 1)
            self._graph = self._graph.merge(leaves[at].sym.name, leaves[at + 1].sym.name, self._name())
        elif kind < 0.7:
            leaf = self._random.choice(leaves)
            divisors = [d for d in range(1, leaf.extent.constant + 1) if leaf.extent.constant % d == 0]
            self._graph = self._graph.split(leaf.sym.name, self._random.choice(divisors), (self._name(), self._name()))
        else:
            leaf = self._random.choice(leaves)
            left, right = self._random.choice(((1, 1), (0, 2), (2, 0), (-1, 0), (0, -1), (-1, 2), (1, -1)))
            if leaf.extent.constant + left + right > 0 and leaf.extent.constant > 2:
                self._graph = self._graph.resize(leaf.sym.name, left, right, self._name())

    def _box(self, name: str) -> None:
        extent = self._graph[name].extent.constant
        kind = self._random.random()
        if kind < 0.15:
            self._loops.append(name)
            return
        box = name
        if kind < 0.8:
            outer, box = self._name(), self._name()
            self._graph = self._graph.split(name, self._random.randint(1, min(extent + 2, 6)), (outer, box))
            self._loops.append(outer)
        if self._random.random() < 0.35:
            tile, stride = self._name(), self._name()
            self._graph = self._graph.split(box, self._random.randint(1, 5), (tile, stride))
            self._loops.append(stride)
            box = tile
        self._bulk.append(box)

    def _loop(self) -> None:
        if not self._loops:
            return
        name = self._loops.pop(self._random.randrange(len(self._loops)))
        kind = self._random.random()
        if kind < 0.45:
            made = (self._name(), self._name())
            self._graph = self._graph.split(name, self._random.randint(1, 4), made)
        elif kind < 0.7 and self._loops:
            other = self._loops.pop(self._random.randrange(len(self._loops)))
            made = (self._name(),)
            self._graph = self._graph.merge(name, other, made[0])
        elif kind < 0.8 and self._loops:
            other = self._loops.pop(self._random.randrange(len(self._loops)))
            made = (self._name(), self._name())
            self._graph = self._graph.swizzle(name, other, Shift(), made)
        else:
            made = (self._name(),)
            self._graph = self._graph.resize(name, *self._random.choice(((1, 0), (0, 1), (1, 2))), made[0])
        self._loops += made

    def _within(self) -> None:
        if len(self._bulk) > 1 and self._random.random() < 0.6:
            inner = self._bulk.pop()
            outer = self._bulk.pop()
            self._bulk.append(self._name())
            self._graph = self._graph.merge(outer, inner, self._bulk[-1])
        elif self._bulk:
            at = self._random.randrange(len(self._bulk))
            names = (self._name(), self._name())
            self._graph = self._graph.split(self._bulk[at], self._random.randint(1, 4), names)
            self._bulk[at : at + 1] = names


def symbolic(made: Schedule) -> Memory:
    """The same transforms, over dimensions whose sizes are symbols, dense in memory."""
    old = made.memory.graph
    graph = DomainGraph.of(*((d.sym.name, sym(f"N{at}")) for at, d in enumerate(old.logical)))
    for transform in old.transforms:
        ins, outs = ([d.sym.name for d in ends] for ends in (transform.inputs, transform.outputs))
        match transform:
            case Split(_, _, inner):
                graph = graph.split(ins[0], inner.extent, (outs[0], outs[1]))
            case Merge():
                graph = graph.merge(ins[0], ins[1], outs[0])
            case Resize(_, left, right):
                graph = graph.resize(ins[0], left, right, outs[0])
            case _:
                graph = graph.swizzle(ins[0], ins[1], Shift(), (outs[0], outs[1]))
    return Memory.dense(replace(graph, leaves=tuple(graph[leaf.sym.name] for leaf in old.leaves)))
