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
        made = Maker(random).schedule()
        if 0 < prod(leaf.extent.constant for leaf in made.memory.graph.leaves) <= POINTS:
            return made


class Maker:
    """Makes a schedule step by step; `graph` so far, its leaves that are loops, and those that the hardware runs."""

    def __init__(self, random: Random):
        self.random = random
        self.count = 0
        rank = random.choice((1, 2, 2, 3))
        sizes = [random.randint(1, 12 if rank < 3 else 6) for _ in range(rank)]
        strides = [1]
        for size in reversed(sizes[1:]):
            strides.append(strides[-1] * size + random.choice((0, 0, 0, 1, 4)))
        self.strides = tuple(map(expr, reversed(strides)))
        self.extent = 1 + sum((n - 1) * s for n, s in zip(sizes, reversed(strides), strict=True))
        self.graph = DomainGraph.of(*((f"x{k}", n) for k, n in enumerate(sizes)))
        self.loops: list[str] = []
        self.bulk: list[str] = []

    def schedule(self) -> Schedule:
        """Views, boxes, loops over coordinates, and what is done within the tile."""
        for _ in range(self.random.choice((0, 0, 1, 2))):
            self.view()
        for leaf in tuple(self.graph.leaves):
            self.box(leaf.sym.name)
        for _ in range(self.random.choice((0, 1, 2, 3))):
            self.loop()
        if self.random.random() < 0.4:
            self.within()
        self.random.shuffle(self.loops)
        if self.random.random() < 0.05:
            self.random.shuffle(self.bulk)
        graph = self.graph
        leaves = tuple(graph[name] for name in (*self.loops, *self.bulk))
        memory = Memory(DomainGraph(graph.logical, graph.transforms, leaves), self.strides)
        return Schedule(memory, tuple(self.bulk), self.extent)

    def name(self) -> str:
        """A new name."""
        self.count += 1
        return f"a{self.count}"

    def view(self) -> None:
        """A view of the tensor, or room around it."""
        leaves = self.graph.leaves
        kind = self.random.random()
        if kind < 0.4 and len(leaves) > 1:
            at = self.random.randrange(len(leaves) - 1)
            self.graph = self.graph.merge(leaves[at].sym.name, leaves[at + 1].sym.name, self.name())
        elif kind < 0.7:
            leaf = self.random.choice(leaves)
            divisors = [d for d in range(1, leaf.extent.constant + 1) if leaf.extent.constant % d == 0]
            self.graph = self.graph.split(leaf.sym.name, self.random.choice(divisors), (self.name(), self.name()))
        else:
            leaf = self.random.choice(leaves)
            left, right = self.random.choice(((1, 1), (0, 2), (2, 0), (-1, 0), (0, -1), (-1, 2), (1, -1)))
            if leaf.extent.constant + left + right > 0 and leaf.extent.constant > 2:
                self.graph = self.graph.resize(leaf.sym.name, left, right, self.name())

    def box(self, name: str) -> None:
        """A leaf boxed, or left to loops."""
        extent = self.graph[name].extent.constant
        kind = self.random.random()
        if kind < 0.15:
            self.loops.append(name)
            return
        box = name
        if kind < 0.8:
            outer, box = self.name(), self.name()
            self.graph = self.graph.split(name, self.random.randint(1, min(extent + 2, 6)), (outer, box))
            self.loops.append(outer)
        if self.random.random() < 0.35:
            tile, stride = self.name(), self.name()
            self.graph = self.graph.split(box, self.random.randint(1, 5), (tile, stride))
            self.loops.append(stride)
            box = tile
        self.bulk.append(box)

    def loop(self) -> None:
        """A transform of loops."""
        if not self.loops:
            return
        name = self.loops.pop(self.random.randrange(len(self.loops)))
        kind = self.random.random()
        if kind < 0.45:
            made = (self.name(), self.name())
            self.graph = self.graph.split(name, self.random.randint(1, 4), made)
        elif kind < 0.7 and self.loops:
            other = self.loops.pop(self.random.randrange(len(self.loops)))
            made = (self.name(),)
            self.graph = self.graph.merge(name, other, made[0])
        elif kind < 0.8 and self.loops:
            other = self.loops.pop(self.random.randrange(len(self.loops)))
            made = (self.name(), self.name())
            self.graph = self.graph.swizzle(name, other, Shift(), made)
        else:
            made = (self.name(),)
            self.graph = self.graph.resize(name, *self.random.choice(((1, 0), (0, 1), (1, 2))), made[0])
        self.loops += made

    def within(self) -> None:
        """A transform of the tile."""
        if len(self.bulk) > 1 and self.random.random() < 0.6:
            inner = self.bulk.pop()
            outer = self.bulk.pop()
            self.bulk.append(self.name())
            self.graph = self.graph.merge(outer, inner, self.bulk[-1])
        elif self.bulk:
            at = self.random.randrange(len(self.bulk))
            names = (self.name(), self.name())
            self.graph = self.graph.split(self.bulk[at], self.random.randint(1, 4), names)
            self.bulk[at : at + 1] = names


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
