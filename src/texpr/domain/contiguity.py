"""Which leaves are contiguous in memory: strides through a graph, vectors along a leaf, boxes of merged IterDomains.

An item lies at Σ stride · index over the logical IterDomains, in elements. A leaf *has a stride* if each step along it
between valid indices moves by that much. Theorems: docs/theory/equivalence.md, "Vectors and boxes".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, IntoExpr, Sym, expr
from texpr.affine.facts import Fact, Known
from texpr.affine.simplify import Simplifier
from texpr.domain.context import Context
from texpr.domain.equivalence.by_rule import merge_and_split_commute
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain, high, low
from texpr.domain.validity import NOTHING, box, guard, leaf_syms, premises, sizes_of
from texpr.presburger.formula import Formula, conj, differ, rename
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import NotAffine
from texpr.support.record import Record, replace

_GROUP, _LANE, _MERGED = "⟨group⟩", "⟨lane⟩", "⟨merged⟩"
"""Names of auxiliary IterDomains."""


class Memory(Record):
    """A graph logical → loop of a tensor, and the strides of its logical IterDomains, in elements; None where unknown."""

    graph: DomainGraph
    strides: tuple[Expr | None, ...]

    @classmethod
    def dense(cls, graph: DomainGraph) -> Memory:
        """Row-major and dense."""
        strides = [ONE]
        for domain in reversed(graph.logical[1:]):
            strides.append(strides[-1] * domain.extent)
        return cls(graph, tuple(reversed(strides[: len(graph.logical)])))


def stride(memory: Memory, leaf: str, known: Known = NOTHING) -> Expr | None:
    """The stride of a leaf over its whole extent; 0 if it has no two valid neighbours, where any stride is right.

    None where it has none, or none is proved.
    """
    domain = memory.graph[leaf]
    if known.nonnegative(1 - domain.extent):
        return ZERO
    found = _stride_by_rules(memory, domain, known)
    return found if found is not None else _stride_by_isl(memory, domain, known)


def merged_stride(memory: Memory, outer: str, inner: str, known: Known = NOTHING) -> Expr | None:
    """The stride of the IterDomain that two leaves merge to, as by `stride`; None if they are discontiguous."""
    return stride(replace(memory, graph=memory.graph.merge(outer, inner, _MERGED)), _MERGED, known)


def box_over_merge(memory: Memory, outer: str, inner: str, factor: IntoExpr, known: Known = NOTHING) -> bool:
    """Whether the merge of two leaves, split by `factor`, gives boxes with one stride in memory, that of `inner`.

    For discontiguous leaves exactly where the factor divides the extent of `inner`, or that of `outer` is at most 1. False
    also where neither is proved.
    """
    step, size = stride(memory, inner, known), expr(factor)
    if step is not None and merge_and_split_commute(memory.graph[outer].extent, memory.graph[inner].extent, size, known):
        return True
    cut = memory.graph.merge(outer, inner, _MERGED).split(_MERGED, size, (_GROUP, _LANE))
    found = stride(replace(memory, graph=cut), _LANE, known)
    return found is not None and (found is ZERO or step is ZERO or found is step)


def vector_width(memory: Memory, leaf: str, known: Known = NOTHING, widths: Sequence[int] = (16, 8, 4, 2)) -> int:
    """The first of `widths`, in elements, for which the leaf is proved to be vectorizable (`takes_vectors`); 1 otherwise.

    Alignment of addresses is not checked here.
    """
    return next((width for width in widths if takes_vectors(memory, leaf, width, known)), 1)


def takes_vectors(memory: Memory, leaf: str, width: int, known: Known = NOTHING) -> bool:
    """Whether each aligned group of `width` of a leaf is proved to be contiguous in memory, and wholly valid or wholly a
    hole.

    Indices past the end of the leaf are holes.
    """
    cut = memory.graph.split(leaf, width, (_GROUP, _LANE))
    step = stride(replace(memory, graph=cut), _LANE, known)
    return (step is ONE or step is ZERO) and _is_uniform(cut, cut[_LANE], known)


class _Rules:
    """The simplifier inside the loops over the leaves; a size that the extent of `leaf` divides is written as a multiple of
    it."""

    def __init__(self, graph: DomainGraph, leaf: IterDomain, known: Known):
        self.context = Context(graph, known)
        self._known = self.context.known
        unit = leaf.extent.constant if leaf.extent.is_constant else 1
        sizes = [s for s in sizes_of(graph) if unit > 1 and self._known.multiple(expr(s), unit)]
        self._units = {s: expr(Sym(f"⟨{s} / {unit}⟩")) * unit for s in sizes}
        self._sizes = {Sym(f"⟨{s} / {unit}⟩"): expr(s) // unit for s in sizes}

    def __call__(self, value: Expr, facts: Iterable[Expr] = ()) -> Expr:
        """`value` simplified, with `facts` ≥ 0 assumed as well."""
        every = (each.substitute(self._units) for each in (*self._known.nonnegatives(), *facts))
        found = Simplifier(Known({}, (Fact(0, each, None) for each in every)))(value.substitute(self._units))
        return self.context.simple(found.substitute(self._sizes))


def _stride_by_rules(memory: Memory, leaf: IterDomain, known: Known) -> Expr | None:
    """The stride of a leaf by simplification, under what is known where both ends of a step are valid."""
    graph = memory.graph
    rules = _Rules(graph, leaf, known)
    here = {d: rules.context.index(d.sym) for d in graph.domains()}
    there = {d: index.substitute(_next(leaf)) for d, index in here.items()}
    facts = [side(d).margin(ends[d]) for ends in (here, there) for d in ends for side in (low, high)]
    unknown = [Sym(f"⟨stride of {d}⟩") for d in graph.logical]
    moved = ZERO
    for domain, step, name in zip(graph.logical, memory.strides, unknown, strict=True):
        moved = moved + (there[domain] - here[domain]) * (name if step is None else step)
    found = rules(moved, facts)
    return None if found.syms() & {*leaf_syms(graph), *unknown} else found


def _stride_by_isl(memory: Memory, leaf: IterDomain, known: Known) -> Expr | None:
    """The stride of one step, where all other steps are proved to have the same.

    Along IterDomains whose strides are not constant all steps must move by the same index; where strides are unknown, by
    none.
    """
    graph, index = memory.graph, memory.graph.indices()
    moves = [index[d.sym].substitute(_next(leaf)) - index[d.sym] for d in graph.logical]
    both = tuple(zip(moves, memory.strides, strict=True))
    total = sum((move * step for move, step in both if step is not None and step.is_constant), ZERO)
    apart = [(move, step) for move, step in both if step is None or not step.is_constant]
    try:
        valid = _valid(graph, known)
        steps = Set.of(leaf_syms(graph), conj((valid, rename(valid, _next(leaf)))))
        one = steps.sample()
        if one is None:
            return ZERO
        watched = [total, *(move for move, _ in apart)]
        if not steps.where(differ(watched, [each.evaluate(one) for each in watched])).is_empty():
            return None
    except (NotAffine, Undecided):
        return None
    found = expr(total.evaluate(one))
    for move, step in apart:
        by = move.evaluate(one)
        if by and step is None:
            return None
        found = found + (step or ZERO) * by
    return found


def _is_uniform(graph: DomainGraph, leaf: IterDomain, known: Known) -> bool:
    """Whether, for each index of the other leaves, all indices of the leaf are valid, or none is."""
    rules = _Rules(graph, leaf, known)
    if all(_is_uniform_at(rules, domain, leaf) for domain in graph.domains() if domain not in graph.leaves):
        return True
    try:
        inside, valid = conj((box(graph), premises(graph, known))), guard(graph)
        every, first = (Set.of(leaf_syms(graph), conj((inside, each))) for each in (valid, rename(valid, {leaf.sym: ZERO})))
        return every.is_equal(first)
    except (NotAffine, Undecided):
        return False


def _is_uniform_at(rules: _Rules, domain: IterDomain, leaf: IterDomain) -> bool:
    """Whether being in bounds of `domain` is the same for all indices of the leaf: n | extent, and ⌊index / n⌋ is invariant."""
    index, size = rules(rules.context.index(domain.sym)), leaf.extent
    if leaf.sym not in index.syms():
        return True
    return rules.context.divides(size, domain.extent) and leaf.sym not in rules(index // size).syms()


def _next(leaf: IterDomain) -> dict[Sym, Expr]:
    """One step along a leaf, as a substitution."""
    return {leaf.sym: expr(leaf.sym) + 1}


def _valid(graph: DomainGraph, known: Known) -> Formula:
    """Where an index of the leaves is valid, at admitted sizes."""
    return conj((box(graph), premises(graph, known), guard(graph)))
