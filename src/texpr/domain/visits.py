"""Enumeration of the visits of a graph at fixed sizes.

Positions are the indices of the leaves in order, the last leaf fastest. All are computed at once, as arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, TypeAlias, assert_never

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor, expr
from texpr.affine.facts import Fact, Known
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import Bound
from texpr.domain.trial import trial_sizes
from texpr.domain.validity import every_bound, facts
from texpr.support.lazy import Module
from texpr.support.record import Record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:  # a graph that a theorem decides is never enumerated
    np = Module("numpy")

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
Sizes: TypeAlias = Mapping[Sym, int]

MOST_POSITIONS = 1 << 22
"""The limit of enumeration: some seconds, and some hundred megabytes."""


class TooMany(Exception):
    """The graph has more positions than the limit of enumeration."""


class Visits(Record, eq=False):
    """For each position the logical index, and whether it is visited; where it is not, the position is a hole."""

    shape: tuple[int, ...]  # extents of the leaves
    logical: Ints  # [logical IterDomain, position]; at holes, what the loops would compute
    visited: Bools  # [position]

    def items(self) -> Ints:
        """The visited logical indices, in order: [logical IterDomain, item]."""
        return self.logical[:, self.visited]

    def at(self, position: int) -> tuple[int, ...] | None:
        """The index visited at a position; None for a hole."""
        return tuple(map(int, self.logical[:, position])) if self.visited[position] else None


def visits(
    graph: DomainGraph, sizes: Sizes | None = None, kept: Iterable[Bound] | None = None, *, first: int | None = None
) -> Visits:
    """Every position of `graph` at `sizes` (or the `first` ones only), guarded by the comparisons `kept` (all, by default).

    Raises TooMany, KeyError for a size without a value, and ValueError for an extent that is negative.
    """
    given = sizes or {}
    if negative := next((d for d in graph.domains() if d.extent.evaluate(given) < 0), None):
        raise ValueError(f"the extent of {negative} is negative at these sizes")
    shape = tuple(leaf.extent.evaluate(given) for leaf in graph.leaves)
    count = prod(shape) if first is None else min(first, prod(shape))
    if count > MOST_POSITIONS:
        raise TooMany(f"{count} positions")
    values = {leaf.sym: at for leaf, at in zip(graph.leaves, _unravel(count, shape), strict=True)}
    index = {s: evaluate(e.substitute(given), values, count) for s, e in graph.indices().items()}
    visited = np.ones(count, dtype=np.bool_)
    for bound in every_bound(graph) if kept is None else kept:
        visited &= evaluate(bound.margin(expr(bound.domain.sym)).substitute(given), index, count) >= 0
    logical = [index[d.sym] for d in graph.logical]
    return Visits(shape, np.stack(logical) if logical else np.empty((0, count), dtype=np.int64), visited)


def _unravel(count: int, shape: Sequence[int]) -> list[Ints]:
    """The index of each leaf at the first `count` positions."""
    position = np.arange(count, dtype=np.int64)
    found: list[Ints] = []
    for extent in reversed(shape):
        found.append(position % extent if extent else position)
        position = position // extent if extent else position
    return found[::-1]


def evaluate(value: Expr, values: Mapping[Sym, Ints], count: int) -> Ints:
    """The value at `count` points at once."""
    total = np.full(count, value.constant, dtype=np.int64)
    for monomial, coefficient in value.terms:
        part = np.full(count, coefficient, dtype=np.int64)
        for atom in monomial:
            part *= _atom(atom, values, count)
        total += part
    return total


def _atom(atom: Atom, values: Mapping[Sym, Ints], count: int) -> Ints:
    match atom:
        case Sym():
            return values[atom]
        case FloorDiv(num, den):
            return evaluate(num, values, count) // evaluate(den, values, count)
        case Mod(num, den):
            return evaluate(num, values, count) % evaluate(den, values, count)
        case Min(args):
            return np.stack([evaluate(a, values, count) for a in args]).min(axis=0)
        case Max(args):
            return np.stack([evaluate(a, values, count) for a in args]).max(axis=0)
        case Xor(number, mask, bits):
            return evaluate(number, values, count) ^ (evaluate(mask, values, count) % (1 << bits))
        case _:
            assert_never(atom)


def small_sizes(known: Known, *graphs: DomainGraph) -> Iterator[dict[Sym, int]]:
    """Some small sizes that `known` admits, and at which the graphs are valid."""
    told = known.also(Fact(0, each, None) for graph in graphs for each in facts(graph, known))
    used = [each for graph in graphs for each in (*graph.indices().values(), *(d.extent for d in graph.domains()))]
    return trial_sizes(used, (d.sym for graph in graphs for d in graph.domains()), told)
