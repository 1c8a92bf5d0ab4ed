"""Weighted set cover: candidates of least cost that hit each set, with a proof of optimality.

The proof is a dual solution: each set pays an amount such that the sets of a candidate together pay at most its cost. Any
choice then costs at least the sum of the payments, as it has a candidate of every set (weak duality of linear programs; if the
sets are intervals, equality is possible). The payments at a node of the search are a lower bound for its subtree.

Before the search: supersets of other sets are removed, dominated candidates are removed, and the only candidate of a set is
chosen. The rest is divided into parts without common candidates, which are searched separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from texpr.support.record import Mutable, Record, field

TRIES = 20_000
"""The greatest number of nodes of one search: about a second."""

_Sets: TypeAlias = dict[int, frozenset[int]]


class Cover(Record):
    """The chosen candidates, by number; their cost; and a proved lower bound.

    `payments`: the amount of each set; their sum proves the bound, unless the search did, with `tried` nodes.
    """

    chosen: tuple[int, ...]
    cost: int
    bound: int
    payments: tuple[int, ...]
    tried: int

    @property
    def paid(self) -> int:
        """The sum of all payments."""
        return sum(self.payments)


def cover(sets: Sequence[frozenset[int]], costs: Sequence[int], limit: int = TRIES) -> Cover:
    """A choice that hits each of `sets`, none of them empty. `costs`: of each candidate, more than 0.

    Of equally good choices, one with late candidates. At the `limit` of nodes for a part, the best choice found: then `cost`
    may be above `bound`.
    """
    payments = [0] * len(sets)
    chosen: set[int] = set()
    left = _reduced(dict(enumerate(sets)), costs, chosen, payments)
    bound, tried = sum(costs[c] for c in chosen), 0
    for part in _parts(left):
        search = _Search(costs, limit)
        search.run(part)
        for number, paid in search.payments.items():
            payments[number] = paid
        chosen.update(search.best)
        bound, tried = bound + search.bound, tried + search.tried
    late = _late(chosen, sets, costs)
    return Cover(late, sum(costs[c] for c in late), bound, tuple(payments), tried)


def _reduced(sets: _Sets, costs: Sequence[int], chosen: set[int], payments: list[int]) -> _Sets:
    """The remaining problem; decided candidates are added to `chosen`, the proof to `payments`."""
    while True:
        sets = _least(sets)
        single = {next(iter(each)): number for number, each in sorted(sets.items(), reverse=True) if len(each) == 1}
        for candidate, number in single.items():
            chosen.add(candidate)
            payments[number] = costs[candidate]
        sets = {number: each for number, each in sets.items() if single.keys().isdisjoint(each)}
        useless = _dominated(sets, costs)
        if not useless:
            return sets
        sets = {number: each - useless for number, each in sets.items()}


def _least(sets: _Sets) -> _Sets:
    """The minimal sets; of equal ones the first."""
    kept: _Sets = {}
    for number, each in sorted(sets.items(), key=lambda item: (len(item[1]), item[0])):
        if not any(small <= each for small in kept.values()):
            kept[number] = each
    return kept


def _dominated(sets: _Sets, costs: Sequence[int]) -> frozenset[int]:
    """The dominated candidates: another one hits the same sets at no higher cost; of equal ones the latest remains."""
    hits: dict[int, set[int]] = {}
    for number, each in sets.items():
        for candidate in each:
            hits.setdefault(candidate, set()).add(number)
    useless: set[int] = set()
    for one in sorted(hits):
        near = sets[next(iter(hits[one]))] - useless - {one}
        if any(costs[other] <= costs[one] and hits[one] <= hits[other] for other in near):
            useless.add(one)
    return frozenset(useless)


def _parts(sets: _Sets) -> Iterator[_Sets]:
    """The connected components: sets that share no candidate, directly or through others."""
    open_sets = dict(sorted(sets.items()))
    while open_sets:
        number = next(iter(open_sets))
        part, seen = {number: open_sets.pop(number)}, set[int]()
        fresh = set(part[number])
        while fresh:
            seen |= fresh
            near = {n: each for n, each in open_sets.items() if not fresh.isdisjoint(each)}
            part.update(near)
            for each in near:
                del open_sets[each]
            fresh = {c for each in near.values() for c in each} - seen
        yield part


def _late(chosen: set[int], sets: Sequence[frozenset[int]], costs: Sequence[int]) -> tuple[int, ...]:
    """The choice with each candidate replaced by the latest equivalent one of its cost."""
    found = set(chosen)
    for candidate in sorted(chosen, reverse=True):
        alone = [each for each in sets if candidate in each and len(each & found) == 1]
        found.discard(candidate)
        if alone:
            fit = alone[0].intersection(*alone[1:])
            found.add(max(c for c in fit if costs[c] <= costs[candidate]))
    return tuple(sorted(found))


_Node: TypeAlias = tuple[_Sets, tuple[int, ...], int]


class _Search(Mutable):
    """Branch and bound for one part, depth first: branches over the candidates of a smallest set."""

    costs: Sequence[int]
    limit: int
    tried: int = 0
    best: tuple[int, ...] = ()
    bound: int = 0
    payments: Mapping[int, int] = field(default_factory=dict[int, int])

    def run(self, sets: _Sets) -> None:
        """Computes `best`, `bound` and the root's `payments`."""
        self.best = tuple(sorted({max(each) for each in sets.values()}))
        self.payments = self._pay(sets, ())
        lower = sum(self.payments.values())
        nodes: list[_Node] = [(sets, (), 0)]
        while nodes and self._cost > lower:
            if self.tried == self.limit:
                self.bound = lower
                return
            self.tried += 1
            nodes.extend(reversed(tuple(self._below(*nodes.pop()))))
        self.bound = self._cost

    @property
    def _cost(self) -> int:
        return sum(self.costs[c] for c in self.best)

    def _below(self, sets: _Sets, chosen: tuple[int, ...], cost: int) -> Iterator[_Node]:
        if cost + sum(self._pay(sets, chosen).values()) >= self._cost:
            return
        narrow = min(sets.values(), key=lambda each: (len(each), max(each)))
        hits = {c: sum(c in each for each in sets.values()) for c in narrow}
        left = sets
        for candidate in sorted(narrow, key=lambda c: (self.costs[c] / hits[c], -c)):
            below = {number: each for number, each in left.items() if candidate not in each}
            yield below, (*chosen, candidate), cost + self.costs[candidate]
            left = {number: each - {candidate} for number, each in left.items()}
            if not all(left.values()):
                return

    def _pay(self, sets: _Sets, chosen: tuple[int, ...]) -> Mapping[int, int]:
        """A greedy dual solution, the best of several orders of the sets. The candidates that are paid in full then form a
        choice."""
        best: Mapping[int, int] = {}
        for order in _ORDERS:
            due = {c: self.costs[c] for each in sets.values() for c in each}
            paid: dict[int, int] = {}
            for number in sorted(sets, key=lambda n, order=order: (order(sets[n]), n)):
                paid[number] = min(due[c] for c in sets[number])
                for candidate in sets[number]:
                    due[candidate] -= paid[number]
            self._keep((*chosen, *_needed((c for c, rest in due.items() if rest == 0), sets, self.costs)))
            if sum(paid.values()) > sum(best.values()):
                best = paid
        return best

    def _keep(self, choice: tuple[int, ...]) -> None:
        if sum(self.costs[c] for c in choice) < self._cost:
            self.best = choice


_ORDERS: tuple[Callable[[frozenset[int]], tuple[int, ...]], ...] = (
    lambda each: (max(each),),
    lambda each: (-min(each),),
    lambda each: (len(each), max(each)),
)


def _needed(choice: Iterable[int], sets: _Sets, costs: Sequence[int]) -> tuple[int, ...]:
    """A choice without redundant candidates, the most expensive removed first."""
    found = set(choice)
    for candidate in sorted(found, key=lambda c: (-costs[c], c)):
        if all(len(each & found) > 1 for each in sets.values() if candidate in each):
            found.discard(candidate)
    return tuple(found)
