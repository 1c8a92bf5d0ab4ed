"""Two schedules compared by isl, for all sizes at once: exact where indices are affine."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.domain.graph import DomainGraph
from texpr.domain.iteration import Iteration, Notion
from texpr.domain.validity import box, guard, leaf_syms, premises
from texpr.presburger.formula import Eq, Formula, Ge, compare, conj, disj
from texpr.presburger.isl.maps import Map, left, right
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set

_POSITION = Sym("⟨position⟩")


def sizes_that_differ(first: Iteration, second: Iteration, by: Notion, known: Known) -> dict[Sym, int] | None:
    """Sizes at which the schedules differ; None where they are equal at all sizes that `known` admits.

    Raises NotAffine, and Undecided where isl exceeds its limit, or multiplicities are compared and both visit an index twice.
    """
    given = conj((premises(first.graph, known), premises(second.graph, known)))
    one, other = _visits(first, given), _visits(second, given)
    if by is Notion.POSITION:
        return _by_position(first.graph, second.graph, one, other, given)
    found = _unequal_sets(one.range(), other.range())
    if found is not None or by is Notion.SET:
        return found
    repeats = [_repeats(each) for each in (one, other)]
    if all(each is not None for each in repeats):
        raise Undecided("how often each index is visited")
    once = next((each for each in repeats if each is not None), None)
    if once is not None or by is Notion.MULTISET:
        return once
    pairs = one.then(other.inverse())
    earlier = pairs.inverse().then(_before(first.graph)).then(pairs)
    return _sizes(earlier.subtract(_before(second.graph)))


def _visits(iteration: Iteration, given: Formula) -> Map:
    """The map from the leaves' indices to the logical index that is visited."""
    graph, leaves = iteration.graph, leaf_syms(iteration.graph)
    where = Set.of(leaves, conj((given, box(graph), guard(graph, iteration.kept))))
    index = graph.indices()
    return Map.function(leaves, [d.sym for d in graph.logical], [index[d.sym] for d in graph.logical], where)


def _by_position(a: DomainGraph, b: DomainGraph, one: Map, other: Map, given: Formula) -> dict[Sym, int] | None:
    """Compared leaf by leaf where the leaves have the same extents, otherwise by the number of the position."""
    if [leaf.extent for leaf in a.leaves] == [leaf.extent for leaf in b.leaves]:
        return _unequal(one, other.renamed(ins=one.ins))
    numbers = [_numbering(graph, given) for graph in (a, b)]
    found = _unequal(numbers[0].inverse().then(one), numbers[1].inverse().then(other))
    return found if found is not None else _unequal_sets(numbers[0].range(), numbers[1].range())


def _numbering(graph: DomainGraph, given: Formula) -> Map:
    """The map from the leaves' indices to the number of the position."""
    number: Expr = ZERO
    for leaf in graph.leaves:
        number = number * leaf.extent + leaf.sym
    leaves = leaf_syms(graph)
    return Map.function(leaves, (_POSITION,), (number,), Set.of(leaves, conj((given, box(graph)))))


def _before(graph: DomainGraph) -> Map:
    """Pairs of indices of the leaves, the first visited earlier."""
    leaves = leaf_syms(graph)
    return Map.of(leaves, leaves, _less([expr(left(s)) for s in leaves], [expr(right(s)) for s in leaves]))


def _less(one: Sequence[Expr], other: Sequence[Expr]) -> Formula:
    """Lexicographic order."""
    return disj(conj((*(Eq(one[k] - other[k]) for k in range(at)), compare("<", one[at], other[at]))) for at in range(len(one)))


def _repeats(visits: Map) -> dict[Sym, int] | None:
    """Sizes at which some index is visited twice."""
    if visits.is_injective():
        return None
    twice = visits.then(visits.inverse())
    different = disj(Ge(sign * (expr(left(s)) - right(s)) - 1) for s in visits.ins for sign in (1, -1))
    return _sizes(twice.intersect(Map.of(visits.ins, visits.ins, different)))


def _unequal(one: Map, other: Map) -> dict[Sym, int] | None:
    found = _sizes(one.subtract(other))
    return found if found is not None else _sizes(other.subtract(one))


def _unequal_sets(one: Set, other: Set) -> dict[Sym, int] | None:
    for extra in (one.subtract(other), other.subtract(one)):
        sample = extra.sample()
        if sample is not None:
            return {s: v for s, v in sample.items() if s not in extra.dims}
    return None


def _sizes(pairs: Map) -> dict[Sym, int] | None:
    """Sizes at which the map has a pair, if any."""
    sample = pairs.sample()
    own = {left(s) for s in pairs.ins} | {right(s) for s in pairs.outs}
    return None if sample is None else {s: v for s, v in sample.items() if s not in own}
