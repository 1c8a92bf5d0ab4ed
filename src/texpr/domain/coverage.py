"""Does a graph visit every logical index, and each exactly once?

    each transform keeps every index?  ─ no proof ─▶  isl, where all is affine  ─▶  every point, where they are few

A transform keeps every index where `down` takes each to an index in bounds, and `up` inverts it. For some transforms that is
known by kind; for others it is proved: a resize by a negative expand drops indices, unless they are holes; an XOR needs whole
blocks; a user's permutation may not be one. Where all transforms that drop indices are inverted by `up` everywhere, as
resizes are, an index is dropped where `down` leaves their bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Fact, Known
from texpr.affine.simplify import Simplifier
from texpr.domain.context import Context
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import high, low
from texpr.domain.predicates.needed import predicates
from texpr.domain.transform import Transform
from texpr.domain.trial import points, trial_sizes
from texpr.presburger.formula import Ge, between, conj, equal, negate
from texpr.presburger.isl.maps import Map
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import NotAffine
from texpr.support.record import Record


class Verdict(Enum):
    """Whether something happens at any size: never, at some, or undecided."""

    NEVER = "never"
    SOME = "for some index"
    OPEN = "undecided"


class Finding(Record):
    """A verdict, with a witness if it is SOME: a logical index and sizes."""

    verdict: Verdict
    index: tuple[int, ...] = ()
    sizes: tuple[tuple[Sym, int], ...] = ()

    def __str__(self) -> str:
        if self.verdict is not Verdict.SOME:
            return self.verdict.value
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes)
        return f"({', '.join(map(str, self.index))})" + (f" where {sizes}" if sizes else "")


_NEVER, _OPEN = Finding(Verdict.NEVER), Finding(Verdict.OPEN)


class Coverage(Record):
    """`dropped`: a logical index that no valid point of the leaves visits. `doubled`: one that two visit."""

    dropped: Finding
    doubled: Finding

    @property
    def each_once(self) -> bool:
        """Whether every logical index is proved to be visited exactly once."""
        return self.dropped.verdict is self.doubled.verdict is Verdict.NEVER


def coverage(graph: DomainGraph, known: Known | None = None) -> Coverage:
    """What the loops over the leaves, guarded by `predicates`, visit, for all sizes that `known` admits."""
    given = known or Known({})
    context = Context(graph, given)
    outside = given.also([Fact(0, each, None) for each in graph.premises() if not each.is_constant])
    loose = [transform for transform in graph.transforms if not _keeps(transform, outside)]
    if not loose:
        return Coverage(_NEVER, _NEVER)
    visits = _Visits(graph, context, outside)
    try:
        return visits.left_out(loose) if all(each.undoes for each in loose) else visits.exactly()
    except (NotAffine, Undecided):
        return visits.by_trial()


def keeps(transform: Transform, known: Known | None = None) -> Finding:
    """Whether some index of the inputs, in bounds, has no place of its own among those of the outputs; with a witness.

    It suffices that `down` stays in bounds and `up` inverts it: then `down` is injective.
    """
    known = known or Known({})
    if transform.keeps(known):
        return _NEVER
    domains = transform.inputs
    names = tuple(d.sym for d in domains)
    place = transform.down(tuple(map(expr, names)))
    back = transform.up(place)
    sizes = known.also([Fact(0, d.extent, None) for d in domains])
    nest = sizes.also([Fact(0, d.sym, d.extent) for d in domains], {d.sym: (0, None) for d in domains})
    simple = Simplifier(nest)
    bounds = [side(d).margin(at) for d, at in zip(transform.outputs, place, strict=True) for side in (low, high)]
    same = all(simple(value) is expr(name) for value, name in zip(back, names, strict=True))
    if same and all(nest.nonnegative(simple(each)) for each in bounds):
        return _NEVER
    right = conj([*map(Ge, bounds), equal(back, names)])
    try:
        loops = [between(0, d.sym, d.extent) for d in domains]
        found = Set.of(names, conj([*loops, *map(Ge, sizes.nonnegatives()), negate(right)])).sample()
        return _NEVER if found is None else _witness(names, _only(found, (*place, *back, *_extents(transform))))
    except (NotAffine, Undecided):
        return _keeps_by_trial(transform, place, back, sizes)


def _keeps_by_trial(transform: Transform, place: Sequence[Expr], back: Sequence[Expr], known: Known) -> Finding:
    domains = transform.inputs
    names = tuple(d.sym for d in domains)
    used = (*place, *back, *_extents(transform))
    verdict = _OPEN if _are_free(used, names) else _NEVER
    for sizes in trial_sizes(used, names, known):
        tried = points(domains, sizes)
        verdict = _OPEN if tried is None else verdict
        for at in tried or ():
            ends = zip(place, transform.outputs, strict=True)
            inside = all(0 <= each.evaluate(at) < domain.extent.evaluate(at) for each, domain in ends)
            if not inside or any(value.evaluate(at) != at[name] for value, name in zip(back, names, strict=True)):
                return _witness(names, at)
    return verdict


def _are_free(values: Iterable[Expr], loops: Iterable[Sym]) -> bool:
    """Whether `values` mention sizes: then trials prove nothing."""
    return bool({name for each in values for name in each.syms()} - set(loops))


def _keeps(transform: Transform, known: Known) -> bool:
    """Whether `transform` is proved to map the indices in bounds injectively to indices in bounds."""
    return keeps(transform, known).verdict is Verdict.NEVER if not transform.undoes else transform.keeps(known)


def _extents(transform: Transform) -> tuple[Expr, ...]:
    return tuple(domain.extent for domain in (*transform.inputs, *transform.outputs))


def _only(found: Mapping[Sym, int], values: Iterable[Expr]) -> dict[Sym, int]:
    """A point restricted to the symbols of `values`."""
    named = {name for value in values for name in value.syms()}
    return {name: value for name, value in found.items() if name in named}


def _witness(names: Sequence[Sym], at: Mapping[Sym, int]) -> Finding:
    sizes = tuple((name, value) for name, value in sorted(at.items(), key=lambda each: str(each[0])) if name not in names)
    return Finding(Verdict.SOME, tuple(at[name] for name in names), sizes)


class _Visits:
    """The map from valid points of the leaves to logical indices."""

    __slots__ = ("_graph", "_known", "_leaves", "_logical", "_margins", "_values")

    def __init__(self, graph: DomainGraph, context: Context, known: Known):
        self._graph, self._known = graph, known
        self._logical = tuple(d.sym for d in graph.logical)
        self._leaves = tuple(d.sym for d in graph.leaves)
        self._values = [context.index(name) for name in self._logical]
        self._margins = [each.margin for each in predicates(graph, known).kept]

    def left_out(self, crops: Sequence[Transform]) -> Coverage:
        """Where all other transforms keep every index: the indices that `crops` drop, by isl. Raises NotAffine, Undecided."""
        below = self._graph.below({name: name for name in self._logical})
        inside = Context(DomainGraph(self._graph.logical, (), self._graph.logical), self._known)
        outputs = [output for crop in crops for output in crop.outputs]
        margins = [inside.simple(side(each).margin(below[each.sym])) for each in outputs for side in (low, high)]
        box = [between(0, d.sym, d.extent) for d in self._graph.logical]
        kept = conj([*map(Ge, self._known.nonnegatives()), *box])
        for margin in margins:
            found = None if inside.known.nonnegative(margin) else Set.of(self._logical, conj([kept, Ge(-margin - 1)])).sample()
            if found is not None:
                return Coverage(_witness(self._logical, _only(found, (*map(expr, self._logical), *self._used()))), _NEVER)
        return Coverage(_NEVER, _NEVER)

    def exactly(self) -> Coverage:
        """By isl. Raises NotAffine, Undecided."""
        sizes = [Ge(each) for each in self._known.nonnegatives()]
        loops = [between(0, d.sym, d.extent) for d in self._graph.leaves]
        valid = Set.of(self._leaves, conj([*loops, *sizes, *map(Ge, self._margins)]))
        outs = [Sym(f"{name}↑") for name in self._logical]  # a leaf may be a logical IterDomain, too
        visits = Map.function(self._leaves, outs, self._values, valid)
        box = Set.of(
            outs, conj([*sizes, *(between(0, out, d.extent) for out, d in zip(outs, self._graph.logical, strict=True))])
        )
        dropped = box.subtract(visits.range()).sample()
        twice = None
        if not visits.is_injective():
            pairs = visits.then(visits.inverse())
            twice = pairs.where_differ(self._leaves, self._leaves)
            visits = visits.intersect_domain(twice.domain())
        doubled = None if twice is None else visits.range().sample()
        used = (*map(expr, outs), *self._used())
        return Coverage(*(_NEVER if each is None else _witness(outs, _only(each, used)) for each in (dropped, doubled)))

    def _used(self) -> tuple[Expr, ...]:
        return (*self._values, *self._margins, *(d.extent for d in (*self._graph.logical, *self._graph.leaves)))

    def by_trial(self) -> Coverage:
        """By enumeration: exact where no size is free; otherwise it finds only what happens at small sizes. Constant bounds
        are required."""
        extents = (d.extent for d in (*self._graph.logical, *self._graph.leaves))
        if any(not each.syms().isdisjoint((*self._leaves, *self._logical)) for each in extents):
            return Coverage(_OPEN, _OPEN)
        dropped = doubled = _OPEN if _are_free(self._used(), (*self._leaves, *self._logical)) else _NEVER
        for sizes in trial_sizes(self._used(), self._leaves, self._known):
            visited = self._count(sizes)
            boxed = points(self._graph.logical, sizes)
            if visited is None or boxed is None:
                dropped, doubled = (_OPEN if each is _NEVER else each for each in (dropped, doubled))
            if visited is not None and boxed is not None:
                for at in boxed:
                    count = visited[tuple(at[name] for name in self._logical)]
                    if count == 0 and dropped.verdict is not Verdict.SOME:
                        dropped = _witness(self._logical, at)
                    if count > 1 and doubled.verdict is not Verdict.SOME:
                        doubled = _witness(self._logical, at)
        return Coverage(dropped, doubled)

    def _count(self, sizes: Mapping[Sym, int]) -> Counter[tuple[int, ...]] | None:
        tried = points(self._graph.leaves, sizes)
        if tried is None:
            return None
        valid = (at for at in tried if all(margin.evaluate(at) >= 0 for margin in self._margins))
        return Counter(tuple(value.evaluate(at) for value in self._values) for at in valid)
