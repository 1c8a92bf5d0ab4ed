"""Equalities of swizzles, decomposed: compared with the facts as they were, at every point of a box."""

import random
from itertools import product

import pytest

from texpr.affine.expr import Expr, Sym, expr, xor
from texpr.presburger.formula import Eq, Formula, between, conj, differ, disj, holds
from texpr.presburger.solve.omega import refuted, system
from texpr.presburger.solve.swizzles import in_bits

A, B, C, D = (Sym(name) for name in "abcd")
BOX = {A: (0, 11), B: (-3, 5), C: (0, 7), D: (2, 9)}


def some_value(rng: random.Random) -> Expr:
    value = expr(rng.choice([A, B, C, D])) + rng.choice([0, 0, 1, 8])
    return rng.choice([value, value, value % 8, value // 2, value + 2 * expr(rng.choice([A, C]))])


def some_facts(seed: int) -> list[Formula]:
    rng = random.Random(seed)
    bits = rng.choice([1, 2, 3])
    value, mask, other = (some_value(rng) for _ in range(3))
    one = xor(value, mask, bits)
    two = rng.choice([xor(other, mask, bits), xor(value, other, bits), xor(other, some_value(rng), bits), some_value(rng)])
    said = rng.choice([Eq(one - two), differ([one], [two]), Eq(4 * one - 4 * two), Eq(one - two + 1)])
    facts: list[Formula] = [between(low, sym, high + 1) for sym, (low, high) in BOX.items() if rng.random() < 0.7]
    facts += [Eq(expr(A) - C + rng.choice([0, 0, 1]))] if rng.random() < 0.5 else []
    if rng.random() < 0.5:
        other = rng.choice([B, D])
        digits = [
            Eq(expr(C) % 2 - expr(other) % 2),
            Eq(expr(C) // 2 % 4 - expr(other) // 2 % 4),
            Eq(expr(C) // 8 - expr(other) // 8),
        ]
        facts += rng.sample(digits, rng.randint(1, 3))
    facts.append(rng.choice([said, disj((said, Eq(expr(D) - 3))), conj((said, Eq(expr(D) - 3)))]))
    rng.shuffle(facts)
    return facts


def points() -> list[dict[Sym, int]]:
    return [dict(zip(BOX, at, strict=True)) for at in product(*(range(low - 1, high + 2) for low, high in BOX.values()))]


def test_what_is_decomposed_has_the_same_points() -> None:
    rng, box, changed = random.Random(0), points(), 0
    for seed in range(400):
        facts = some_facts(seed)
        found = in_bits(facts)
        changed += [*found] != facts
        for at in rng.sample(box, 150):
            assert all(holds(fact, at) for fact in facts) == all(holds(fact, at) for fact in found), (seed, at)
    assert changed > 200  # so that the comparison says something


def test_numbers_of_equal_digits_are_equal() -> None:
    digits = [Eq(expr(A) % 8 - expr(C) % 8), Eq(swizzled(A, B) - swizzled(C, B)), Eq(expr(A) // 64 - expr(C) // 64)]
    assert Eq(expr(A) - C) in in_bits(digits)
    for number in range(3):
        assert Eq(expr(A) - C) not in in_bits([*digits[:number], *digits[number + 1 :]])


@pytest.mark.parametrize("low", [-1, 0])
@pytest.mark.parametrize("high", [7, 8])
def test_ranges_are_as_wide_as_they_are_said_to_be(low: int, high: int) -> None:
    facts = [between(low, A, high + 1), between(low, C, high + 1), Eq(xor(expr(A) % 8, B, 3) - xor(expr(C) % 8, B, 3))]
    found = in_bits(facts)
    for a, c in product(range(-3, 11), repeat=2):
        at = {A: a, C: c, B: 5}
        assert all(holds(fact, at) for fact in facts) == all(holds(fact, at) for fact in found), at


def test_digits_of_different_weights_are_not_joined() -> None:
    digits = [Eq(expr(A) % 4 - expr(C) % 8), Eq(swizzled(A, B) - swizzled(C, B)), Eq(expr(A) // 4 - expr(C) // 8)]
    assert Eq(expr(A) - C) not in in_bits(digits)


def test_facts_without_swizzles_are_left_as_they_are() -> None:
    facts = [Eq(expr(A) - B), between(0, A, 8)]
    assert in_bits(facts) is facts


def swizzled(chunk: Sym, row: Sym) -> Expr:
    return xor(expr(chunk) // 8 % 8, row, 3)


def test_rows_of_a_swizzled_tile_hold_each_element_once() -> None:
    around = [between(0, A, 256), between(0, C, 256), between(0, B, 64), between(0, D, 64), Eq(expr(B) - D)]
    alike = [Eq(swizzled(A, B) - swizzled(C, D)), Eq(expr(A) // 64 - expr(C) // 64), Eq(expr(A) % 8 - expr(C) % 8)]
    assert refuted([*around, *alike, differ([A], [C])])
    assert not refuted([*around, *alike[1:], differ([A], [C])])


@pytest.mark.parametrize("later", [1, 4])
def test_two_copies_into_one_place_of_a_ring_are_found(later: int) -> None:
    """Each place is written again `later` iterations of the ring later, exactly where it has so many stages."""
    around = [between(0, A, 256), between(0, C, 256), between(0, B, 64), between(0, D, 64), Eq(expr(B) - D)]
    same = [Eq(swizzled(A, B) - swizzled(C, D)), Eq(expr(A) // 64 - expr(C) // 64), Eq(expr(A) % 8 - expr(C) % 8)]
    one, other = Sym("t"), Sym("t'")
    ring = [between(0, one, 99), between(0, other, 99), Eq(expr(one) % 4 - expr(other) % 4), Eq(expr(other) - one - later)]
    assert system(conj([*around, *same, *ring])).is_empty() is (later == 1)
