"""The cheapest cover of random sets: against all choices, and its proof by adding up."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

import pytest

from texpr.lowering.cover import Cover, cover

Problem = tuple[list[frozenset[int]], list[int]]


def least(sets: list[frozenset[int]], costs: list[int]) -> int:
    """The least cost of all choices."""
    candidates = range(len(costs))
    choices = (frozenset(c) for size in range(len(costs) + 1) for c in combinations(candidates, size))
    return min(sum(costs[c] for c in choice) for choice in choices if all(each & choice for each in sets))


def random_problem(seed: int, candidates: int, most: int) -> Problem:
    """Intervals, circular ones, or any sets: what lists, loops and branches give."""
    chooser = random.Random(seed)
    costs = [chooser.choice([1, 1, 5, 8, 64, chooser.randint(1, 100)]) for _ in range(candidates)]
    sets: list[frozenset[int]] = []
    for _ in range(chooser.randint(1, most)):
        begin, length = chooser.randrange(candidates), chooser.randint(1, candidates // 2)
        match seed % 3:
            case 0:
                sets.append(frozenset(range(begin, min(begin + length, candidates))))
            case 1:
                sets.append(frozenset((begin + at) % candidates for at in range(length)))
            case _:
                sets.append(frozenset(chooser.sample(range(candidates), length)))
    return sets, costs


def faults(sets: list[frozenset[int]], costs: list[int], found: Cover) -> Iterator[str]:
    """What is wrong with a cover, whatever the best one is."""
    if not all(each & set(found.chosen) for each in sets):
        yield "a set is not met"
    if found.cost != sum(costs[c] for c in found.chosen):
        yield "its cost is another one"
    if min(found.payments, default=0) < 0 or len(found.payments) != len(sets):
        yield "a set pays less than nothing"
    for candidate, cost in enumerate(costs):
        if sum(paid for paid, each in zip(found.payments, sets, strict=True) if candidate in each) > cost:
            yield f"candidate {candidate} is paid more than it costs"
    if not found.paid <= found.bound <= found.cost:
        yield f"{found.paid} paid, {found.bound} at least, {found.cost} found"


def test_no_choice_costs_less() -> None:
    by_payments = 0
    for seed in range(600):
        sets, costs = random_problem(seed, 9, 8)
        found = cover(sets, costs)
        assert list(faults(sets, costs, found)) == [], seed
        assert found.cost == found.bound == least(sets, costs), seed
        by_payments += found.paid == found.cost
    assert 300 < by_payments < 600, by_payments  # and the others by searching


def test_large_ones_are_proved() -> None:
    for seed in range(30):
        sets, costs = random_problem(seed, 120, 60)
        found = cover(sets, costs)
        assert list(faults(sets, costs, found)) == [], seed
        assert found.bound == found.cost, (seed, found)


def test_at_the_limit_the_best_found_is_a_cover_and_the_bound_holds() -> None:
    stopped = 0
    for seed in range(2, 90, 3):
        sets, costs = random_problem(seed, 30, 40)
        found, best = cover(sets, costs, limit=1), cover(sets, costs)
        assert list(faults(sets, costs, found)) == [], seed
        assert found.bound <= best.bound == best.cost <= found.cost, seed
        stopped += found.bound < found.cost
    assert stopped >= 3, stopped


@pytest.mark.parametrize("chosen", [(), (0,), (0, 1, 2)])
def test_a_wrong_cover_is_noticed(chosen: tuple[int, ...]) -> None:
    sets, costs = [frozenset({0, 1}), frozenset({1, 2})], [3, 4, 3]
    right = cover(sets, costs)
    assert (right.chosen, right.cost, right.bound) == ((1,), 4, 4)
    assert list(faults(sets, costs, Cover(chosen, 4, 4, right.payments, 0)))
    assert list(faults(sets, costs, Cover((1,), 4, 4, (3, 3), 0)))


def test_of_equal_choices_the_latest() -> None:
    assert cover([frozenset({0, 1, 2})], [2, 2, 3]).chosen == (1,)
    assert cover([frozenset({0, 1, 2}), frozenset({2, 3})], [2, 2, 2, 2]).chosen == (2,)
    assert cover([], [1, 2]).chosen == ()
