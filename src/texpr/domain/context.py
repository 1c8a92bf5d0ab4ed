"""Inside the loops over a graph's leaves: simplified indices, and proofs about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from texpr.affine.expr import ZERO, Atom, Expr, FloorDiv, Min, Mod, Sym, children, expr, rebuilt, term
from texpr.affine.facts import Fact, Known
from texpr.affine.ranges import Range
from texpr.affine.simplify import Simplifier
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import Bound, Implication, IterDomain, divisor
from texpr.domain.transform import Transform


class Context:
    """The inside of the nest over the leaves of `graph`, each in 0..extent.

    Assumed, as the graph's contract: extents of logical IterDomains are not negative, and symbolic factors are positive.
    Indices are simplified transform by transform, on demand, so that they stay small however deep the graph is.
    """

    __slots__ = ("_given", "_indices", "_made_into", "_margins", "_outside", "graph", "known", "simple")

    def __init__(self, graph: DomainGraph, known: Known | None = None):
        self.graph = graph
        premises = [Fact(0, each, None) for each in graph.premises() if not each.is_constant]
        self._given = (known or Known({})).also(premises)
        self.known = _inside(graph.leaves, self._given)
        self.simple = Simplifier(self.known)
        self._made_into: dict[Sym, Transform] = {d.sym: t for t in graph.transforms for d in t.inputs}
        self._outside = {len(graph.leaves): self.known}
        self._margins: dict[Bound, Expr] = {}
        self._indices: dict[Sym, Expr] = {d.sym: self.simple(expr(d.sym)) for d in graph.leaves}

    @property
    def is_empty(self) -> bool:
        """Whether the loops are proved to run no iteration, whatever the sizes."""
        return any(self.known.nonnegative(-leaf.extent) for leaf in self.graph.leaves)

    def index(self, domain: Sym) -> Expr:
        """The index of any IterDomain of the graph, in the symbols of the leaves."""
        found = self._indices.get(domain)
        if found is None:
            transform = self._made_into[domain]
            above = transform.up(tuple([self.index(d.sym) for d in transform.outputs]))
            for made, value in zip(transform.inputs, above, strict=True):
                self._indices[made.sym] = self.simple(value)
            found = self._indices[domain]
        return found

    def innermost(self, value: Expr) -> int:
        """The depth of the nest at which `value` is known: one more than the position of its innermost leaf."""
        named = value.syms()
        return max((at for at, leaf in enumerate(self.graph.leaves, 1) if leaf.sym in named), default=0)

    def hoisted(self, index: Expr) -> Expr:
        """`index`, changed so that it divides by no zero even when only the loops down to its innermost leaf run.

        A loop further inside may be what proves a divisor positive, as 0 ≤ k < M does for M.
        """
        if not _divides_by_a_size(index):
            return index
        depth = self.innermost(index)
        return _with_divisors(index, lambda divisor: self._given.positive(divisor) or self._within(depth).positive(divisor))

    def _within(self, depth: int) -> Known:
        """What is known where only the outermost `depth` loops run."""
        if depth not in self._outside:
            self._outside[depth] = _inside(self.graph.leaves[:depth], self._given)
        return self._outside[depth]

    def margin(self, bound: Bound) -> Expr:
        """The expression that is ≥ 0 where the comparison holds, over the leaves' symbols."""
        found = self._margins.get(bound)
        if found is None:
            found = self._margins[bound] = self.simple(bound.margin(self.index(bound.domain.sym)))
        return found

    def applies(self, implication: Implication) -> bool:
        """Whether the premises of `implication`, which are on sizes only, are proved."""
        return all(self._nonnegative(each) for each in implication.premises) and all(
            self.divides(n, value) for n, value in implication.divides
        )

    def divides(self, n: Expr, value: Expr) -> bool:
        """Whether n is proved to divide `value` at all sizes."""
        if n is ZERO:
            return self.simple(value) is ZERO
        if n.is_constant and self.known.multiple(value, abs(n.constant)):
            return True
        rest = self.simple(value % n)
        return rest is ZERO or (self.known.positive(n) and self.known.nonnegative(-rest))

    def is_zero(self, value: Expr) -> bool:
        """Whether `value` is proved to be 0 at all sizes."""
        return self.simple(value) is ZERO

    def _nonnegative(self, value: Expr) -> bool:
        if self.known.nonnegative(value):
            return True
        simple = self.simple(value)
        return simple is not value and self.known.nonnegative(simple)


def _inside(leaves: Iterable[IterDomain], outside: Known) -> Known:
    """`outside` with 0 ≤ leaf < extent for each of `leaves`, and with positive extents, as their loops run."""
    ranges: dict[Sym, Range] = {}
    facts: list[Fact] = []
    for leaf in leaves:
        if leaf.extent.is_constant:
            ranges[leaf.sym] = 0, leaf.extent.constant - 1
        else:
            ranges[leaf.sym] = 0, None
            facts.append(Fact(0, leaf.sym, leaf.extent))
            facts.extend(Fact(1, part, None) for part in _positive(leaf.extent, outside))
    return outside.also(facts, ranges)


def _positive(value: Expr, known: Known) -> Iterator[Expr]:
    """Expressions that are ≥ 1 where `value` is: recursively, the factors of a product none of which is negative."""
    if value.constant or len(value.terms) != 1:
        return
    ((monomial, coefficient),) = value.terms
    first = monomial[0]
    if len(monomial) > 1:
        if coefficient > 0 and all(known.nonnegative(term((atom,))) for atom in monomial):
            for atom in monomial:
                yield from _positive(term((atom,)), known)
    elif coefficient < 0:
        if isinstance(first, FloorDiv) and known.positive(first.den):  # a ceiling is positive where its dividend is
            yield from _positive(-first.num, known)
    elif isinstance(first, Sym):
        yield expr(first)
    elif isinstance(first, FloorDiv) and known.positive(first.den):
        yield from _positive(first.num, known)
    elif isinstance(first, Min):
        for arg in first.args:
            yield from _positive(arg, known)


def _divides_by_a_size(value: Expr) -> bool:
    return any(map(_atom_divides_by_a_size, (atom for monomial, _ in value.terms for atom in monomial)))


def _atom_divides_by_a_size(atom: Atom) -> bool:
    divides = isinstance(atom, FloorDiv | Mod) and not atom.den.is_constant
    return divides or any(map(_divides_by_a_size, children(atom)))


def _with_divisors(value: Expr, positive: Callable[[Expr], bool]) -> Expr:
    """`value` where no divisor is zero, and defined elsewhere: a divisor not proved positive becomes max(divisor, 1)."""
    total = expr(value.constant)
    for monomial, coefficient in value.terms:
        product = expr(coefficient)
        for atom in monomial:
            parts = [_with_divisors(part, positive) for part in children(atom)]
            if isinstance(atom, FloorDiv | Mod) and not positive(parts[1]):
                parts[1] = divisor(parts[1])
            product = product * (rebuilt(atom, tuple(parts)) if parts else term((atom,)))
        total = total + product
    return total
