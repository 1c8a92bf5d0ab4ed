"""Coalesce, composition, complement and the inverses: their meaning at every small layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import pytest
from tests.layout import laws
from tests.layout.oracle import answer, layouts, numbers, places, shapes, values

from texpr.layout import E, Layout
from texpr.layout.algebra.coalesce import coalesce, filtered
from texpr.layout.algebra.complement import complement
from texpr.layout.algebra.compose import composition
from texpr.layout.algebra.inverse import contiguous, left_inverse, nullspace, right_inverse
from texpr.layout.text import parse_layout


def small() -> Iterator[Layout]:
    yield from layouts(12, 2, (0, 1, 2, 3, 4))
    yield from layouts(8, 3, (0, 1, 2, 4), least=2)


def large() -> Iterator[Layout]:
    yield from layouts(24, 2, (0, 1, 2, 3, 4, 5, 6, 8, 12))
    yield from layouts(24, 3, (0, 1, 2, 4, 6))


def check_alone(every: Iterable[Layout]) -> dict[str, int]:
    """Every unary operation; how often each was answered."""
    answered = dict.fromkeys(("complement", "right", "left"), 0)
    for a in every:
        table = numbers(a)
        assert laws.coalesces(a, coalesce(a)), a
        assert set(numbers(filtered(a))) == set(table), a
        assert laws.nullifies(a, nullspace(a)), a
        prefix = numbers(contiguous(a))
        assert [table[x] for x in prefix] == list(range(len(prefix))), a
        if (c := answer(complement, a)) is not None:
            answered["complement"] += 1
            assert laws.complements(a, len(set(table)) * len(numbers(c)), c), a
        if (r := answer(right_inverse, a)) is not None:
            answered["right"] += 1
            assert laws.inverts_right(a, r), a
        assert (r is None) == (len(prefix) != max(table) + 1), a
        if (l := answer(left_inverse, a)) is not None:  # noqa: E741
            answered["left"] += 1
            assert laws.inverts_left(a, l), a
    return answered


def test_alone() -> None:
    answered = check_alone(small())
    assert all(count > 300 for count in answered.values()), answered


@pytest.mark.long
def test_alone_up_to_24() -> None:
    answered = check_alone(large())
    assert all(count > 5000 for count in answered.values()), answered


def repeats(a: Layout) -> bool:
    """Whether modes that move give one value twice."""
    moving = [mode for mode in a.flat if mode.stride != 0]
    return len(set(numbers(a))) < len(numbers(a)) if len(moving) == len(a.flat) else len(moving) > 1


@pytest.mark.parametrize("cotarget", [1, 6, 8, 12, 24, 36])
def test_complement_in_a_cotarget(cotarget: int) -> None:
    answered = 0
    for a in layouts(8, 2, (0, 1, 2, 3, 4, 6)):
        c = answer(complement, a, cotarget)
        if c is not None:
            answered += 1
            assert laws.complements(a, cotarget, c), a
        elif not repeats(a):  # the greedy starts are the only ones, and no layout
            starts = laws.starts_in(sorted(set(numbers(a))), cotarget)
            assert not starts or not laws.is_layout(starts), a
    assert answered > 5


def firsts(most: int) -> Iterator[Layout]:
    """Strides that merge nowhere, that merge everywhere, and that repeat."""
    for shape in (sizes for count in (1, 2, 3) for sizes in shapes(most, count, 2)):
        yield Layout(shape)
        for steps in ((1, 100, 10000), (0, 3, 1), (100, 1, 0)):
            yield Layout(shape, steps[: len(shape)])


def check_pairs(first: Iterable[Layout], second: list[Layout]) -> tuple[int, int]:
    """How many compositions are answered; how many are refused though B lies in A and each of its modes alone is answered.

    These carry: the sum of what its modes give alone is not A(B(c)).
    """
    answered = carried = 0
    inside = [(b, max(numbers(b))) for b in second]
    for a in first:
        for b, greatest in inside:
            r = answer(composition, a, b)
            if r is not None:
                answered += 1
                assert laws.composes(a, b, r), (a, b, r)
            elif greatest < len(numbers(a)) and not b.is_leaf:
                alone = [answer(composition, a, mode) for mode in b.modes]
                modes = [mode for mode in alone if mode is not None]
                if len(modes) == len(alone):
                    carried += 1
                    assert not laws.composes(a, b, Layout.of(*modes)), (a, b)
    return answered, carried


def test_composition() -> None:
    answered, carried = check_pairs(firsts(8), list(layouts(8, 2, range(6), least=2)))
    assert answered > 2000
    assert carried > 100


@pytest.mark.long
def test_composition_up_to_24() -> None:
    second = [*layouts(8, 2, range(7), least=2), *layouts(12, 3, (0, 1, 2, 4), least=2)]
    answered, carried = check_pairs(firsts(24), second)
    assert answered > 50000
    assert carried > 1000


def exists(a: Layout, b: Layout) -> bool:
    """Whether some layout of the coordinates of `b` has the values A(B(c)), and B lies in A: by trying every one."""
    table, reached = numbers(a), numbers(b)
    if max(reached) >= len(table):
        return False
    lines = [[table[x] for x in numbers(Layout(leaf.size, leaf.stride))] for leaf in b.flat]
    sums = [sum(parts) for parts in (tuple(reversed(each)) for each in product(*reversed(lines)))]
    return sums == [table[x] for x in reached] and all(map(laws.is_layout, lines))


def check_refused(first: Iterable[Layout], second: list[Layout]) -> tuple[int, int]:
    """That a composition is answered exactly where there is one; how many are, how many are not."""
    found = [0, 0]
    for a in first:
        for b in second:
            r = answer(composition, a, b)
            found[r is None] += 1
            assert (r is not None) == exists(a, b), (a, b)
            assert r is None or laws.composes(a, b, r), (a, b, r)
    return found[0], found[1]


def test_a_composition_is_refused_only_where_there_is_none() -> None:
    """Also where digits carry and nothing is seen of it: those of stride 0, and such as cancel."""
    first = [*layouts(10, 2, (0, 1, 5), least=2), *(Layout((2, 2, 3), steps) for steps in product((0, 1, 7), repeat=3))]
    answered, refused = check_refused(first, list(layouts(4, 2, (0, 1, 2, 3, 4), least=2)))
    assert answered > 1000 and refused > 1000
    for text in (
        "(5,3):(0,5) o (4,):(3,)",
        "(2,2,3):(1,5,7) o (2,2):(3,1)",
        "(2,5):(1,100) o 2:3",
        "(3,4):(0,1) o (2,2):(1,4)",
    ):
        a, b = map(parse_layout, text.split(" o "))
        assert laws.composes(a, b, composition(a, b))


@pytest.mark.long
def test_compositions_of_up_to_24() -> None:
    first = [*layouts(24, 2, (0, 1, 2, 3, 5), least=2), *layouts(24, 3, (0, 1, 4), least=2)]
    answered, refused = check_refused(first, list(layouts(8, 2, range(8), least=2)))
    assert answered > 50000 and refused > 10000


def test_composition_with_coordinates() -> None:
    """B's values may be coordinates of A."""
    a = Layout((4, (2, 3)), (1, (100, 10)))
    b = Layout((2, 3, 2), (E(1, 0) * 0, E(1, 1), E(0) * 2))
    r = composition(a, b)
    assert r == Layout((2, 3, 2), (0, 10, 2))
    whole = composition(a, Layout((4, 6), (E(0), E(1))))
    assert values(whole) == values(a)
    for c in range(24):
        assert places(a(c)) == places(whole(c))


def test_a_profile_coalesces_mode_by_mode() -> None:
    a = Layout(((2, 3), (2, 2), 5), ((1, 2), (6, 24), 100))
    assert coalesce(a, (1, 1)) == Layout((6, (2, 2), 5), (1, (6, 24), 100))
    assert coalesce(a, (1, (1, 1))) == Layout((6, (2, 2), 5), (1, (6, 24), 100))
    assert coalesce(a) == Layout((12, 2, 5), (1, 24, 100))
