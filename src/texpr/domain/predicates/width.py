"""The width of the integers in which the indices and comparisons of a graph are computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from texpr.affine.expr import Expr, children, term
from texpr.affine.facts import Fact, Known
from texpr.affine.ranges import Interval
from texpr.domain.context import Context
from texpr.domain.graph import DomainGraph
from texpr.domain.predicates.needed import predicates
from texpr.support.limits import LARGEST_INT, LARGEST_SIZE


def index_bits(graph: DomainGraph, known: Known | None = None) -> Literal[32, 64]:
    """32 if signed 32-bit integers hold every value that code over the leaves computes, for all sizes in 0..LARGEST_SIZE;
    else 64.

    These are: extents; the index of every IterDomain, in holes too (`outer · n + inner` with the padded outer); and the kept
    comparisons, as written and as `extent − 1 − index`; each with every partial sum, in any order. `known` may narrow the
    sizes. 64 means that 32 bits are not proved to suffice. That 64 suffice is not checked: more would need more elements than
    any memory has bytes.
    """
    given = _up_to_largest(graph, known or Known({}))
    context = Context(graph, given)
    return 32 if all(_fits(each, context.known) for each in _computed(context, given)) else 64


def _up_to_largest(graph: DomainGraph, known: Known) -> Known:
    domains = graph.domains()
    used = {name for each in (*graph.indices().values(), *(d.extent for d in domains)) for name in each.syms()}
    sizes = sorted(used - {d.sym for d in domains}, key=str)
    return known.also([Fact(0, name, LARGEST_SIZE + 1) for name in sizes])


def _computed(context: Context, known: Known) -> Iterator[Expr]:
    for domain in context.graph.domains():
        yield domain.extent
        yield context.index(domain.sym)
    for each in predicates(context.graph, known).kept:
        yield each.margin
        yield each.bound.domain.extent - 1


def _fits(value: Expr, known: Known) -> bool:
    """Whether `value` and its subexpressions fit 32 bits, in any order of its terms."""
    least, most = min(value.constant, 0), max(value.constant, 0)
    for monomial, coefficient in value.terms:
        if not all(_fits(part, known) for atom in monomial for part in children(atom)):
            return False
        lo, hi = known.interval(term(monomial, coefficient))
        if len(monomial) > 1 and not _is_narrow(known.interval(term(monomial))):
            return False
        least, most = least + min(lo, 0), most + max(hi, 0)
    return _is_narrow((least, most))


def _is_narrow(ends: Interval) -> bool:
    return ends[0] >= -LARGEST_INT - 1 and ends[1] <= LARGEST_INT
