"""Which comparisons exclude the holes of a graph, and why the others are not needed.

    every bound of every IterDomain  ─ theorems ─▶  few  ─ intervals, isl ─▶  an irredundant set

A point of the leaves is valid where every IterDomain of the graph is in bounds. The theorems (`Transform.implications`) are
Horn clauses on bounds. A bound is dropped only where the remaining ones imply it, by forward chaining, so two bounds that
imply each other are never both dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

from texpr.affine.expr import Expr
from texpr.affine.facts import Known
from texpr.domain.context import Context
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import Bound, Side, high, low
from texpr.domain.predicates.implied import Hypotheses
from texpr.domain.predicates.witness import Witnesses
from texpr.support.record import Record

IN_RANGE = "in range"
"""Implied by the ranges of the loops and what is known of sizes."""

ISL = "isl"
"""Implied by no theorem, but proved by the integer solver."""


class Predicate(Record):
    """A comparison that is tested: `bound`, whose IterDomain has the index `index` in the leaves' symbols.

    It may be tested as soon as the leaves that it mentions are known: it divides by no zero outside the loops of other
    leaves.
    """

    bound: Bound
    index: Expr

    @property
    def margin(self) -> Expr:
        """The expression that is ≥ 0 exactly where the comparison holds."""
        return self.bound.margin(self.index)

    def __str__(self) -> str:
        return f"0 <= {self.index}" if self.bound.side is Side.LOW else f"{self.index} < {self.bound.domain.extent}"


class Removed(Record):
    """A comparison that is not tested, as `by` imply it: kept bounds, bounds of leaves, or bounds removed before it."""

    bound: Bound
    theorem: str
    by: tuple[Bound, ...]

    def __str__(self) -> str:
        return f"{self.bound} by {self.theorem}" + (f", from {', '.join(map(str, self.by))}" if self.by else "")


class Predicates(Record):
    """Every comparison of a graph, except those that the loops over leaves ensure: kept, or removed with the reason.

    No kept one follows from the others, except perhaps those of `undecided`: products of sizes, or beyond the solver's limit.
    """

    kept: tuple[Predicate, ...]
    removed: tuple[Removed, ...]
    undecided: tuple[Bound, ...] = ()


def predicates(graph: DomainGraph, known: Known | None = None) -> Predicates:
    """The comparisons that exclude exactly the holes of `graph`, for all sizes that `known` admits.

    Comparisons on outer leaves and on plain indices are preferred. Source: divisibility-of-split.md, "Predication".
    """
    context = Context(graph, known)
    clauses = _Clauses.of(context)
    if context.is_empty:
        return Predicates((), tuple(Removed(bound, IN_RANGE, ()) for bound in clauses.open))
    return _Selection(context, clauses).result()


class _Clause(Record):
    given: tuple[int, ...]
    then: int
    theorem: str


class _Closed(Record):
    """The bounds that follow, each with the clause that derived it, in topological order; and the open premises of each
    clause."""

    found: dict[int, _Clause | None]
    waiting: list[int]


class _Clauses(Record):
    """The bounds of a graph, numbered, those that the loops ensure first; the clauses of the theorems whose premises on sizes
    hold."""

    bounds: tuple[Bound, ...]
    ensured: int
    clauses: tuple[_Clause, ...]
    users: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(context: Context) -> _Clauses:
        graph = context.graph
        loops = [side(leaf) for leaf in graph.leaves for side in (low, high)]
        at = {
            bound: k for k, bound in enumerate(dict.fromkeys([*loops, *(s(d) for d in graph.domains() for s in (low, high))]))
        }
        said = [each for transform in graph.transforms for each in transform.implications() if context.applies(each)]
        clauses = tuple([_Clause(tuple(sorted([at[each] for each in i.given])), at[i.then], i.theorem) for i in said])
        users: list[list[int]] = [[] for _ in at]
        for k, clause in enumerate(clauses):
            for each in clause.given:
                users[each].append(k)
        return _Clauses(tuple(at), len(loops), clauses, tuple(map(tuple, users)))

    @property
    def open(self) -> tuple[Bound, ...]:
        """The bounds that the loops do not ensure."""
        return self.bounds[self.ensured :]

    def nothing(self) -> _Closed:
        """The closure of the empty set."""
        closed = _Closed({}, [len(clause.given) for clause in self.clauses])
        self._chain(closed, [clause for clause in self.clauses if not clause.given])
        return closed

    def closure(self, start: Iterable[int], onto: _Closed) -> _Closed:
        """The closure of `start` together with `onto`, which is not modified."""
        closed = _Closed(onto.found.copy(), onto.waiting.copy())
        for bound in start:
            if bound not in closed.found:
                closed.found[bound] = None
                self._chain(closed, self._ready(closed, bound))
        return closed

    def _chain(self, closed: _Closed, ready: list[_Clause]) -> None:
        while ready:
            clause = ready.pop()
            if clause.then not in closed.found:
                closed.found[clause.then] = clause
                ready += self._ready(closed, clause.then)

    def _ready(self, closed: _Closed, bound: int) -> list[_Clause]:
        """The clauses whose last missing bound is `bound`."""
        for k in self.users[bound]:
            closed.waiting[k] -= 1
        return [self.clauses[k] for k in self.users[bound] if closed.waiting[k] == 0]


class _Selection:
    """Drops bounds one after the other, the most expensive tests first."""

    __slots__ = ("_clauses", "_context", "_proved")

    def __init__(self, context: Context, clauses: _Clauses):
        self._context, self._clauses = context, clauses
        self._proved: dict[int, tuple[Bound, ...]] = {}

    def result(self) -> Predicates:
        clauses, context = self._clauses, self._context
        loops = clauses.closure(range(clauses.ensured), clauses.nothing())
        open_ = [k for k in range(clauses.ensured, len(clauses.bounds)) if k not in loops.found]
        ranged = [k for k in open_ if context.known.nonnegative(self._margin(k))]
        base = clauses.closure(ranged, loops)
        kept = self._by_theorems(sorted((k for k in open_ if k not in base.found), key=self._cost), base)
        undecided = self._exactly(kept)
        bounds = clauses.bounds
        proved = dict(reversed(self._proved.items()))
        reasons = {k: Removed(bounds[k], IN_RANGE, ()) for k in ranged}
        reasons |= {k: Removed(bounds[k], ISL, by) for k, by in proved.items()}
        for k, clause in clauses.closure((*kept, *proved), base).found.items():
            if clause is not None and k not in reasons:
                reasons[k] = Removed(bounds[k], clause.theorem, tuple(bounds[each] for each in clause.given))
        return Predicates(
            tuple(Predicate(bounds[k], context.hoisted(context.index(bounds[k].domain.sym))) for k in kept),
            tuple(reasons.values()),
            tuple(bounds[k] for k in undecided),
        )

    def _by_theorems(self, open_: list[int], base: _Closed) -> list[int]:
        """Those of `open_` that do not follow from the rest and `base`; the last ones are dropped first."""
        before = [base]
        for k in open_:
            before.append(self._clauses.closure((k,), before[-1]))
        kept: list[int] = []
        for k, others in zip(reversed(open_), reversed(before[:-1]), strict=True):
            if k not in self._clauses.closure(kept, others).found:
                kept.append(k)
        return kept[::-1]

    def _exactly(self, kept: list[int]) -> list[int]:
        """Removes from `kept` those proved to follow from the others; returns those for which that is undecided."""
        undecided: list[int] = []
        witnesses = Witnesses(self._context.graph, self._context.known)
        hypotheses: Hypotheses | None = None
        every = [self._margin(k) for k in kept]
        for k in reversed(kept.copy()):
            others = [each for each in kept if each != k]
            margins = [self._margin(each) for each in others]
            if witnesses.needs(self._margin(k), margins):
                continue
            hypotheses = hypotheses or Hypotheses(self._context, every, witnesses.any())
            answer = hypotheses.imply(margins, self._margin(k))
            if isinstance(answer, tuple):
                kept.remove(k)
                self._proved[k] = tuple(self._clauses.bounds[others[at]] for at in answer)
            elif answer is None:
                undecided.append(k)
        return undecided[::-1]

    def _margin(self, k: int) -> Expr:
        return self._context.margin(self._clauses.bounds[k])

    def _cost(self, k: int) -> tuple[int, bool, int, int]:
        """The cost of a test, less is better: only outer leaves, then a single leaf, then a short text; then the order of the
        graph."""
        index = self._context.index(self._clauses.bounds[k].domain.sym)
        return self._context.innermost(index), index.as_sym is None, len(str(index)), k
