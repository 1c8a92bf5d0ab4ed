"""Are two schedules of one logical domain the same iteration? Decided for all sizes, with a counter-example where they are not.

    fixed and few positions ─▶ enumeration, else affine ─▶ isl, else fixed ─▶ enumeration, else theorems, else small sizes

A schedule visits, position by position, logical indices or holes. Two of them are compared

    as SETs         which indices are visited
    as MULTISETs    how often each is
    in ORDER        one after the other, holes left out
    by POSITION     position by position, a hole only equal to a hole, the end only to the end

each of which implies those above it. Statements and proofs are in docs/theory/equivalence.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from math import prod
from typing import TypeAlias

import numpy as np

from texpr.affine.expr import Sym
from texpr.affine.facts import Known
from texpr.domain.equivalence.by_isl import sizes_that_differ
from texpr.domain.equivalence.by_rule import same_by_rule
from texpr.domain.iteration import Iteration, Notion
from texpr.domain.validity import NOTHING, admits, sizes_of
from texpr.domain.visits import MOST_POSITIONS, Ints, Sizes, TooMany, Visits, small_sizes, visits
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record

FEW_POSITIONS = 1 << 14
"""The most positions that are enumerated first: of longer schedules only so many, as most differences occur early."""


class Nothing(Enum):
    """Marks a position at which a schedule visits no index."""

    HOLE = "a hole"
    END = "the end"


Visited: TypeAlias = tuple[int, ...] | Nothing


class Difference(Record):
    """The first place at which two schedules differ, at these sizes, and what each visits there.

    `place` counts positions; for ORDER visits; for SETs and MULTISETs visited indices in sorted order.
    """

    place: int
    first: Visited
    second: Visited
    sizes: Mapping[Sym, int]

    def __str__(self) -> str:
        found = f"at {self.place}: {_text(self.first)}, and {_text(self.second)}"
        return f"{found}; with {', '.join(f'{s} = {v}' for s, v in self.sizes.items())}" if self.sizes else found


class Same(Record):
    """Equal at all sizes. `by` says what decided: isl, enumeration, or the theorem."""

    by: str


class Different(Record):
    """Not equal at some sizes; `witness` is None only where the first difference lies beyond what is enumerated."""

    witness: Difference | None


class Open(Record):
    """Neither proved nor disproved: products of sizes without a theorem, or beyond isl's limit."""


Verdict: TypeAlias = Same | Different | Open


def compare(first: Iteration, second: Iteration, by: Notion = Notion.POSITION, known: Known = NOTHING) -> Verdict:
    """Whether `first` and `second` are the same iteration, for all sizes that `known` admits.

    Raises ValueError where their logical domains differ.
    """
    if first.graph.logical != second.graph.logical:
        raise ValueError("the schedules start at different logical domains")
    fixed = not sizes_of(first.graph, second.graph)
    if fixed and all(_positions(each, {}) <= FEW_POSITIONS for each in (first, second)):
        return _compare_by_enumeration(first, second, by)
    try:
        sizes = sizes_that_differ(first, second, by, known)
        if sizes is None or admits(known, sizes):
            return Same("isl") if sizes is None else Different(_witness(first, second, by, sizes))
    except (NotAffine, Undecided):
        pass
    if fixed:
        with suppress(TooMany):
            return _compare_by_enumeration(first, second, by)
    theorem = same_by_rule(first, second, by, known)
    return _search(first, second, by, known) if theorem is None else Same(theorem)


def _compare_by_enumeration(first: Iteration, second: Iteration, by: Notion) -> Verdict:
    found = first_difference(first, second, by, {})
    return Same("enumeration") if found is None else Different(found)


def _search(first: Iteration, second: Iteration, by: Notion, known: Known) -> Verdict:
    """A difference at small sizes, if there is one."""
    for sizes in small_sizes(known, first.graph, second.graph):
        with suppress(TooMany):
            found = first_difference(first, second, by, sizes)
            if found is not None:
                return Different(found)
    return Open()


def _witness(first: Iteration, second: Iteration, by: Notion, sizes: Sizes) -> Difference | None:
    """The difference that enumeration finds where isl has proved that there is one."""
    try:
        found = first_difference(first, second, by, sizes)
    except TooMany:
        return None
    if found is None:
        raise CompilerBug(f"two schedules that differ, as isl says, are the same at {dict(sizes)}")
    return found


def first_difference(first: Iteration, second: Iteration, by: Notion, sizes: Sizes) -> Difference | None:
    """Where the schedules first differ at `sizes`, by enumeration; None where they are equal. Raises TooMany."""
    if by is not Notion.POSITION:
        return _difference(first, second, by, sizes, None)
    for limit in (FEW_POSITIONS, MOST_POSITIONS):
        found = _difference(first, second, by, sizes, limit)
        if found is not None:
            return found
        if all(_positions(each, sizes) <= limit for each in (first, second)):
            return None
    raise TooMany(f"{MOST_POSITIONS} positions are equal")


def _positions(iteration: Iteration, sizes: Sizes) -> int:
    return prod(leaf.extent.evaluate(sizes) for leaf in iteration.graph.leaves)


def _difference(first: Iteration, second: Iteration, by: Notion, sizes: Sizes, limit: int | None) -> Difference | None:
    """As `first_difference`, among the first `limit` positions."""
    one, other = (_canonical(visits(each.graph, sizes, each.kept, first=limit), by) for each in (first, second))
    shared = min(one.shape[1], other.shape[1])
    unequal = np.flatnonzero((one[:, :shared] != other[:, :shared]).any(axis=0))
    if not unequal.size and one.shape[1] == other.shape[1]:
        return None
    place = int(unequal[0]) if unequal.size else shared
    return Difference(place, _visited(one, place), _visited(other, place), dict(sizes))


def _canonical(found: Visits, by: Notion) -> Ints:
    """The rows that are compared: [1 or 0 for a hole, logical index…; position]."""
    rows = np.concatenate([found.visited[None].astype(np.int64), np.where(found.visited, found.logical, 0)])
    if by is Notion.POSITION:
        return rows
    rows = rows[:, found.visited]
    if by is Notion.ORDER:
        return rows
    rows = rows[:, np.lexsort(rows[::-1])]
    if by is Notion.MULTISET:
        return rows
    new = np.ones(rows.shape[1], dtype=np.bool_)
    new[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    return rows[:, new]


def _visited(rows: Ints, place: int) -> Visited:
    if place >= rows.shape[1]:
        return Nothing.END
    return tuple(map(int, rows[1:, place])) if rows[0, place] else Nothing.HOLE


def _text(visited: Visited) -> str:
    return visited.value if isinstance(visited, Nothing) else f"[{', '.join(map(str, visited))}]"
