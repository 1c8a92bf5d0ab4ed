"""Coalesce, composition, complement and the inverses: their meaning at every small layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from tests.layout import laws
from tests.layout.oracle import answer, layouts, numbers, places, shapes, values

from texpr.layout import E, Layout
from texpr.layout.coalesce import coalesce, filtered
from texpr.layout.complement import complement
from texpr.layout.compose import composition
from texpr.layout.inverse import contiguous, left_inverse, nullspace, right_inverse


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


def test_a_leaf_is_refused_only_where_no_layout_would_do() -> None:
    """None each of whose strides moves one digit; by coincidence one that moves several may do, as 2:101 for 2:3 in (2,5)."""
    refused = 0
    for a in firsts(12):
        if a.flat[0].stride == 1 and all(m.stride == 100**at for at, m in enumerate(a.flat)):
            table = numbers(a)
            for b in layouts(12, 1, range(1, 9), least=2):
                reached = numbers(b)
                if max(reached) < len(table) and answer(composition, a, b) is None:
                    refused += 1
                    assert not laws.is_layout([table[x] for x in reached], _moves_one_digit), (a, b)
    assert refused > 20


def _moves_one_digit(step: int) -> bool:
    return sum(step // 100**at % 100 > 0 for at in range(3)) < 2


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
