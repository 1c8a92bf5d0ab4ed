"""Boxes that the tensor memory accelerator copies: their layout in shared memory, and whether the hardware supports them.

    stage(A, …, via=tma, box=(64, 32), swizzle=128B)       a region of 128 × 64 of A: f32[M, K]

    As: [2, 2, 64, 32]     four boxes, one after the other, each in the engine's layout: swizzled

With an element stride the region is every `step`-th element of the tensor, and a box covers `step` times as many as lie in
memory. A copy is described as a graph from the tensor to the leaves that the hardware runs, and planned by `texpr.tma.model`.
A box may start anywhere: at `at · covers − shift` with 0 ≤ shift ≤ covers, which is a resize on the left and a split.
"""

from __future__ import annotations

from itertools import product
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.affine.facts import Fact, Known
from texpr.domain.contiguity import Memory
from texpr.domain.graph import DomainGraph
from texpr.domain.transforms.swizzle import Xor
from texpr.ir.operation.tensor_map import element
from texpr.ir.value import Buffer
from texpr.isa.engine import CHUNK, LINE
from texpr.support.record import Record, replace
from texpr.tma.descriptor import Use
from texpr.tma.model import Copy, Refusal, plan
from texpr.tma.rules import Findings, findings
from texpr.tma.swizzle import Swizzle

ATOM = 8
"""The rows after which every swizzle pattern repeats (PTX ISA, "Swizzling Modes")."""

ALLOCATED = 256
"""The alignment of results and workspace, in bytes."""


class Boxes(Record):
    """A region of `extent` elements along each dimension as boxes of `box`, which divides it; `size`: bytes of an element.

    `steps`: the distance of neighbours, in elements of the tensor.
    """

    extent: tuple[int, ...]
    box: tuple[int, ...]
    size: int
    swizzle: Swizzle = Swizzle.NONE
    steps: tuple[int, ...] = ()

    @property
    def strides(self) -> tuple[int, ...]:
        """`steps`; 1 where none are given."""
        return self.steps or (1,) * len(self.box)

    @property
    def covers(self) -> tuple[int, ...]:
        """The elements of the tensor from the start of a box to that of the next: the box of the descriptor."""
        return tuple(b * s for b, s in zip(self.box, self.strides, strict=True))

    @property
    def counts(self) -> tuple[int, ...]:
        """Boxes along each dimension."""
        return tuple(e // b for e, b in zip(self.extent, self.box, strict=True))

    @property
    def numbers(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of every box along each dimension, in memory order."""
        return tuple(product(*map(range, self.counts)))

    @property
    def row(self) -> int:
        """Bytes of a box along the innermost dimension."""
        return self.box[-1] * self.size

    @property
    def bytes(self) -> int:
        """The shared memory of one box; with a swizzle rows are padded to lines of 128 bytes."""
        rows = prod(self.box[:-1])
        lines = LINE // self.swizzle.span if self.is_moved else 1
        return -(-rows // lines) * lines * self.row

    @property
    def is_moved(self) -> bool:
        """Whether a swizzle has an effect: in the first line of memory it has none."""
        return self.swizzle is not Swizzle.NONE and prod(self.box[:-1]) > 1

    @property
    def _is_whole(self) -> bool:
        """Whether consecutive boxes have the layout of the whole region, swizzle included."""
        return prod(self.counts[1:]) == 1 and not (self.is_moved and prod(self.box[:-1]) % ATOM)

    def allocation(self, name: str) -> DomainGraph:
        """The memory of the staged buffer `name`, from its dimensions `name.d0`, …: boxes outermost.

        Boxes of whole rows, one below the other, have the layout of the rows, which are not split.
        """
        graph = DomainGraph.of(*((f"{name}.d{n}", e) for n, e in enumerate(self.extent)))
        outer: list[str] = []
        inner: list[str] = []
        for n, (extent, box) in enumerate(zip(self.extent, self.box, strict=True)):
            own = f"{name}.d{n}"
            if box < extent and (n or not self._is_whole):
                graph = graph.split(own, box, (f"{own}_box", f"{own}_in"))
                outer.append(f"{own}_box")
                own = f"{own}_in"
            inner.append(own)
        if outer:
            graph = graph.reorder(*outer, *inner)
        return self.moved(graph, name, inner)

    def moved(self, graph: DomainGraph, name: str, inner: list[str]) -> DomainGraph:
        """`graph` with the leaves `inner` of one box swizzled; new leaves are called `name`.…"""
        if not self.is_moved:
            return graph
        *rows, column = inner
        row = rows[0]
        for number, each in enumerate(rows[1:]):
            graph, row = graph.merge(row, each, f"{name}.rows{number}"), f"{name}.rows{number}"
        graph = graph.split(column, CHUNK // self.size, (f"{name}.chunk", f"{name}.lane"))
        lines = LINE // self.swizzle.span
        if lines > 1:
            graph, row = graph.split(row, lines, (f"{name}.line", f"{name}.within")), f"{name}.line"
        bits = (self.swizzle.span // CHUNK).bit_length() - 1
        return graph.swizzle(row, f"{name}.chunk", Xor(bits), (f"{name}.line_s", f"{name}.chunk_s"))


class Planned(Record):
    """The copy common to all boxes of a region. `first`: the values of its graph's symbols in the first box.

    `steps`: the increments of these from one box to the next along each dimension.
    """

    copy: Copy
    first: dict[Sym, Expr]
    steps: tuple[tuple[Sym, int] | None, ...]

    def coordinates(self, number: tuple[int | Expr, ...]) -> tuple[Expr, ...]:
        """The coordinates of box `number`, innermost first, over the symbols of the region's base."""
        grown = {step[0]: expr(n) * step[1] for step, n in zip(self.steps, number, strict=True) if step is not None}
        meaning = {sym: value + grown.get(sym, 0) for sym, value in self.first.items()}
        return tuple(each.substitute(meaning) for each in self.copy.coordinates)

    def found(self, boxes: Boxes, known: Known) -> tuple[int, ...]:
        """The dimensions of the tensor that the engine bounds-checks, wherever `known` holds.

        Of several that form one dimension of the copy it is the outermost, if boxes stay inside of the others.
        """
        names = {domain.sym.name: n for n, domain in enumerate(self.copy.graph.logical)}
        names |= {f"{name}.room": n for name, n in names.items()}
        dims: list[int] = []
        for first, *others in (each.parts for each in self.copy.dimensions):
            ends = [(part.coordinate.substitute(self.first), part, names[part.domain.sym.name]) for part in others]
            room = [part.size - at - boxes.extent[n] * boxes.strides[n] for at, part, n in ends]
            if all(map(known.nonnegative, (*(at for at, _, _ in ends), *room))):
                dims.append(names[first.domain.sym.name])
        return tuple(dims)


def planned(buffer: Buffer, base: tuple[Expr, ...], boxes: Boxes, known: Known) -> Planned | Refusal:
    """The copy of the boxes of the region at `base`, where `known` holds."""
    graph = DomainGraph.of(*((f"{buffer.name}.d{n}", e) for n, e in enumerate(buffer.shape)))
    meaning: dict[Sym, Expr] = {}
    steps: list[tuple[Sym, int] | None] = []
    facts: list[Fact] = []
    inner: list[str] = []
    every = zip(base, buffer.shape, boxes.covers, boxes.strides, boxes.counts, strict=True)
    for n, (first, size, box, stride, count) in enumerate(every):
        own = f"{buffer.name}.d{n}"
        at = Sym(f"{own}.at")
        if first is ZERO and size is expr(box) and count == stride == 1:
            inner.append(own)
            steps.append(None)
            continue
        last = first + (count - 1) * box
        if known.multiple(first, box) and known.nonnegative(first) and known.positive(size - last):
            meaning[at] = first // box
            steps.append((at, 1))
        else:
            shift = Sym(f"{own}.shift")
            facts.append(Fact(0, shift, box + 1))  # a range, not a single number, so that it stays symbolic
            meaning |= {at: ZERO, shift: -first}
            steps.append((shift, -box))
            graph, own = graph.resize(own, shift, 0, f"{own}.room"), f"{own}.room"
        whole, own = own, f"{buffer.name}.d{n}.box"
        graph = graph.split(whole, box, (at.name, own))
        if stride > 1:
            phase = Sym(f"{buffer.name}.d{n}.phase")
            meaning[phase] = ZERO  # a region starts at its first element
            graph, own = graph.split(own, stride, (f"{buffer.name}.d{n}.tile", phase.name)), f"{buffer.name}.d{n}.tile"
        inner.append(own)
    graph = graph.reorder(*(d.sym.name for d in graph.leaves if d.sym.name not in inner), *inner)
    loops = frozenset(s.name for s in meaning)
    graph = boxes.moved(graph, buffer.name, inner)
    bulk = [d.sym.name for d in graph.leaves if d.sym.name not in loops]
    found = plan(Memory(graph, dense_strides(buffer)), bulk, element(buffer.dtype), known.also(facts), bulk)
    return found if isinstance(found, Refusal) else Planned(found, meaning, tuple(steps))


def dense_strides(buffer: Buffer) -> tuple[Expr, ...]:
    """The strides of a dense buffer, in elements, also where none are written."""
    if buffer.strides is not None:
        return buffer.strides
    found = [ONE]
    for size in reversed(buffer.shape[1:]):
        found.append(found[-1] * size)
    return tuple(reversed(found[: buffer.rank]))


def ruled(planned: Planned, buffer: Buffer, boxes: Boxes, known: Known, stores: bool = False) -> Findings:
    """The results of the hardware's rules for every box of a stage; `stores`: from shared memory to the buffer."""
    begins = buffer.align or (buffer.dtype.bytes if buffer.role in ("input", "inout") else ALLOCATED)
    number = Sym("which box")
    last = prod(boxes.counts) - 1
    shared = expr(number) * boxes.bytes if last else ZERO
    map = planned.copy.tensor_map(expr(Sym("base")) * begins)
    if boxes.is_moved:  # a copy of rows within one line of memory does not show it
        map = replace(map, swizzle=boxes.swizzle)
    at = planned.coordinates(tuple(0 for _ in boxes.box))
    if ZERO in map.sizes:  # nothing is ever copied, so that neither the size nor where a box would begin is against a rule
        map, at = replace(map, sizes=tuple(ONE if size is ZERO else size for size in map.sizes)), tuple(ZERO for _ in at)
    use = Use(map, at, shared, stores=stores)
    return findings(use, known.also((Fact(0, number, last + 1),)))
