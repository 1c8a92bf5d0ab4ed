"""What the reads of a consumer meet in a buffer: items, holes, or memory outside the allocation.

A consumer iterates a graph logical → loop, keeps some comparisons, and reads a buffer whose graph logical → allocation starts
at the same logical IterDomains. Where both graphs share IterDomains further down, the index is passed on there instead: a
loop over a tile as allocated reads the tile's holes as holes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Known
from texpr.domain.correctness.holes import Consumer, NoFill, Number
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import Bound
from texpr.domain.validity import NOTHING, admits, box, guard, leaf_syms, premises
from texpr.presburger.formula import Formula, between, conj, negate, rename
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.support.record import Record


class Point(Record):
    """An index of the consumer's loops, and the index of the allocation that it reads, at some sizes."""

    loop: tuple[int, ...]
    reads: tuple[int, ...]
    sizes: Mapping[Sym, int]


class Landing(Record):
    """One point of each kind, or None where it is proved that there is none.

    hole: a hole of the loops reads a hole of the buffer, and so its fill.
    item: a hole of the loops reads an item, which then counts twice.
    outside: a point reads outside the allocation.
    lost: a valid point reads a hole or outside the allocation, since its item was cropped.
    """

    hole: Point | None
    item: Point | None
    outside: Point | None
    lost: Point | None

    def consumer(self, name: str, neutral: Number | None, *, idempotent: bool = False) -> Consumer:
        """The consumer with these reads, for `required`. `idempotent`: joining a value twice does not change the result, as
        in max, min, and, or.

        Raises NoFill where no fill can make it right.
        """
        if self.outside is not None:
            raise NoFill(f"{name} reads outside of what is allocated, at {_text(self.outside)}")
        if self.lost is not None:
            raise NoFill(f"{name} reads an item that is not there, at {_text(self.lost)}")
        if self.item is not None and not idempotent:
            raise NoFill(f"{name} reads an item twice, at {_text(self.item)}")
        return Consumer(name, self.hole is not None, neutral)


def landing(loop: DomainGraph, allocation: DomainGraph, kept: Iterable[Bound] | None = None, known: Known = NOTHING) -> Landing:
    """How a consumer that iterates `loop`, guarded by `kept` (all comparisons, by default), reads a buffer.

    `kept` may include a comparison that no code tests, if its failure reaches only holes of the consumer's own result. Raises
    NotAffine, Undecided, and ValueError where the logical domains differ.
    """
    if loop.logical != allocation.logical:
        raise ValueError("the graphs start at different logical domains")
    touched = reads(loop, allocation)
    at = {leaf.sym: touched[leaf.sym] for leaf in allocation.leaves}
    inside = conj(between(0, at[leaf.sym], leaf.extent) for leaf in allocation.leaves)
    item = rename(guard(allocation), at)
    valid = guard(loop)
    known_of_sizes = conj((premises(loop, known), premises(allocation, known)))
    run = Set.of(leaf_syms(loop), conj((box(loop), guard(loop, kept), known_of_sizes)))
    index = tuple(at.values())

    def first(*where: Formula) -> Point | None:
        point = _point(run.where(conj(where)), loop, index)
        if point is not None and not admits(known, point.sizes):
            raise Undecided("where reads land")
        return point

    return Landing(
        hole=first(negate(valid), inside, negate(item)),
        item=first(negate(valid), inside, item),
        outside=first(negate(valid), negate(inside)),
        lost=first(valid, negate(conj((inside, item)))),
    )


def reads(loop: DomainGraph, allocation: DomainGraph) -> dict[Sym, Expr]:
    """The index of every IterDomain of the allocation that a point of the loops reads, over the loops' symbols."""
    index = loop.indices()
    shared = {domain.sym for domain in loop.logical}
    for transform in loop.transforms:
        if transform in allocation.transforms and all(d.sym in shared for d in transform.inputs):
            shared |= {d.sym for d in transform.outputs}
    return allocation.below({s: index[s] for s in shared})


def _point(found: Set, loop: DomainGraph, index: tuple[Expr, ...]) -> Point | None:
    sample = found.sample()
    if sample is None:
        return None
    leaves = leaf_syms(loop)
    sizes = {s: v for s, v in sample.items() if s not in leaves}
    return Point(tuple(sample[leaf] for leaf in leaves), tuple(i.evaluate(sample) for i in index), sizes)


def _text(point: Point) -> str:
    at = ", ".join(map(str, point.loop))
    return f"({at})" + "".join(f" with {name} = {value}" for name, value in point.sizes.items())
