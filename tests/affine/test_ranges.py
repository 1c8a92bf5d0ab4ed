"""Bounds: sound everywhere, tight where that is promised."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.affine.expressions import Tree, build, trees
from tests.affine.knowledge import Box, boxes, facts, points

from texpr.affine import ranges as module
from texpr.affine.expr import Expr, Sym, maximum, minimum, sym, xor
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.affine.ranges import Range, bounds

R, C, N, M = sym("i"), sym("j"), sym("n"), sym("m")


def values(built: Expr, box: Box) -> list[int]:
    found: list[int] = []
    for point in points(box, ()):
        try:
            found.append(built.evaluate(point))
        except ZeroDivisionError:
            continue
    return found


@settings(max_examples=150, deadline=None)
@given(trees("ijn"), boxes("ijn"))
def test_bounds_are_sound(tree: Tree, known: tuple[Box, dict[Sym, Range]]) -> None:
    try:
        built = build(tree)
    except ZeroDivisionError:
        return
    box, ranges = known
    lo, hi = bounds(built, ranges)
    found = values(built, box)
    assert lo is None or all(lo <= value for value in found)
    assert hi is None or all(value <= hi for value in found)


def once(draw: st.DrawFn) -> Expr:
    """An expression with no symbol twice, and no divisor but constants."""
    parts = [sym(name) for name in draw(st.permutations("ijnm"))]
    while len(parts) > 1:
        a, b = parts.pop(), parts.pop()
        d, f = draw(st.integers(1, 5)), draw(st.integers(-4, 4))
        parts.append(draw(st.sampled_from([a + f * b, a // d + b, a - b // d, minimum(a, b + f), maximum(a, f) - b])))
    d = draw(st.integers(1, 7))
    return draw(st.sampled_from([parts[0], parts[0] // d, parts[0] % d]))


@settings(max_examples=250, deadline=None)
@given(boxes("ij"), st.integers(0, 4), st.integers(-20, 20))
def test_bounds_of_a_swizzle_are_tight(known: tuple[Box, dict[Sym, Range]], bits: int, offset: int) -> None:
    (lo, hi), mask = known[0][Sym("i")], known[0][Sym("j")]
    box = {Sym("i"): (lo + offset, hi + offset), Sym("j"): mask}
    found = values(xor(R, C, bits), box)
    if mask[0] // 2**bits == mask[1] // 2**bits:
        assert bounds(xor(R, C, bits), {symbol: ends for symbol, ends in box.items()}) == (min(found), max(found))
    for s in box:
        free = bounds(xor(R, C, bits), {symbol: ends for symbol, ends in box.items() if symbol != s})
        assert all(end is None or end <= min(found) for end in free[:1]) and all(
            end is None or end >= max(found) for end in free[1:]
        )


@settings(max_examples=120, deadline=None)
@given(st.composite(once)(), boxes("ijnm"))
def test_bounds_are_tight_where_no_symbol_comes_twice(built: Expr, known: tuple[Box, dict[Sym, Range]]) -> None:
    box = {symbol: (lo, min(hi, lo + 3)) for symbol, (lo, hi) in known[0].items()}
    found = values(built, box)
    remainder = any(type(atom).__name__ == "Mod" for monomial, _ in built.terms for atom in monomial)
    lo, hi = bounds(built, {symbol: ends for symbol, ends in box.items()})
    if remainder:  # of a range longer than the divisor, or of steps: sound, not always tight
        assert lo is not None and hi is not None and lo <= min(found) and max(found) <= hi
    else:
        assert (lo, hi) == (min(found), max(found))


@pytest.mark.parametrize(("lo", "hi", "d"), list(product(range(-7, 8, 3), range(0, 12, 3), (1, 2, 3, 5, 8))))
def test_bounds_of_a_remainder_are_tight(lo: int, hi: int, d: int) -> None:
    found = values(R % d, {Sym("i"): (lo, lo + hi)})
    assert bounds(R % d, {Sym("i"): (lo, lo + hi)}) == (min(found), max(found))


ENDS: list[Range] = [(0, 9), (-4, 4), (3, None), (None, -2), (None, None), (1, 7), (-6, -1)]


@pytest.mark.parametrize(("num", "den"), list(product(ENDS, ENDS)))
def test_bounds_of_symbolic_quotients_are_sound_and_their_ends_are_met(num: Range, den: Range) -> None:
    """The oracle tries every pair within a window; an infinite end must be infinite in truth, or at least grow."""
    ranges = {Sym("i"): num, Sym("n"): den}

    def found(function: Callable[[int, int], int], window: int) -> tuple[int, int]:
        inside = [range(-window if lo is None else lo, (window if hi is None else hi) + 1) for lo, hi in (num, den)]
        every = [function(a, b) for a, b in product(*inside) if b]
        return min(every), max(every)

    def is_met(end: int | None, near: int, far: int) -> bool:
        return far == end if end is not None else abs(far) > abs(near)

    for built, function in ((R // N, int.__floordiv__), (R % N, int.__mod__), (R * N, int.__mul__)):
        near, far = found(function, 30), found(function, 60)
        lo, hi = bounds(built, ranges)
        assert (lo is None or lo <= far[0]) and (hi is None or far[1] <= hi)
        if built is R // N:
            assert is_met(lo, near[0], far[0]) and is_met(hi, near[1], far[1])


@pytest.mark.parametrize(
    ("built", "ranges", "expected"),
    [
        (R * R, {Sym("i"): (-3, 2)}, (0, 9)),
        (R * R * R, {Sym("i"): (-3, 2)}, (-27, 8)),
        (R * R, {Sym("i"): (None, 2)}, (0, None)),
        (R * R, {Sym("i"): (2, 3)}, (4, 9)),
        (R * 0, {}, (0, 0)),
        (R * N, {Sym("i"): (0, 0), Sym("n"): (None, None)}, (0, 0)),
        (maximum(R, 5), {}, (5, None)),
        (minimum(R, N), {Sym("i"): (0, 3), Sym("n"): (2, None)}, (0, 3)),
        (R // N, {Sym("n"): (0, 0)}, (None, None)),
        (R, {Sym("i"): (10**30, 10**40)}, (10**30, 10**40)),
        (R % N, {Sym("i"): (0, None), Sym("n"): (1, 7)}, (0, 6)),
        (R % N, {Sym("i"): (2, 3), Sym("n"): (7, 9)}, (2, 3)),
        (xor(R, C, 3), {Sym("i"): (3, 12)}, (0, 15)),
        (xor(R, C, 3), {Sym("i"): (17, 19)}, (16, 23)),
        (xor(R, C, 3), {Sym("i"): (0, None)}, (0, None)),
        (xor(R, C, 3), {Sym("j"): (0, 7)}, (None, None)),
        (xor(R, C, 3), {Sym("i"): (0, 3), Sym("j"): (0, 1)}, (0, 3)),
        (xor(R, C, 3), {Sym("i"): (0, 1), Sym("j"): (4, 5)}, (4, 5)),
    ],
)
def test_known_bounds(built: Expr, ranges: dict[Sym, Range], expected: Range) -> None:
    assert bounds(built, ranges) == expected


def test_an_unsound_corner_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above can fail: bounds that forget that a floor falls with a negative divisor are found out."""
    monkeypatch.setattr(module, "_by_sign", lambda den: iter([(False, 1, max(abs(den[0]), abs(den[1])))]))
    with pytest.raises(AssertionError):
        for num, den in product(ENDS, ENDS):
            test_bounds_of_symbolic_quotients_are_sound_and_their_ends_are_met(num, den)


@settings(max_examples=120, deadline=None)
@given(trees("ijn", 3), boxes("ijn"), facts)
def test_what_facts_prove_is_true(tree: Tree, known: tuple[Box, dict[Sym, Range]], given_facts: list[Fact]) -> None:
    try:
        built = build(tree)
    except ZeroDivisionError:
        return
    box, ranges = known
    told = Known(ranges, given_facts)
    if told.nonnegative(built):
        for point in points(box, given_facts):
            try:
                assert built.evaluate(point) >= 0
            except ZeroDivisionError:
                continue


@settings(max_examples=150, deadline=None)
@given(trees("ijn", 3), boxes("ijn"), facts, st.integers(1, 12))
def test_what_is_said_to_divide_divides(
    tree: Tree, known: tuple[Box, dict[Sym, Range]], given_facts: list[Fact], factor: int
) -> None:
    try:
        built = build(tree) * factor
    except ZeroDivisionError:
        return
    box, ranges = known
    told = Known(ranges, given_facts)
    for divisor in (2, 3, 4, 6, 8, 12):
        if told.multiple(built, divisor):
            for point in points(box, given_facts):
                try:
                    assert built.evaluate(point) % divisor == 0
                except ZeroDivisionError:
                    continue


X, Y = sym("x"), sym("y")
DIVISIBLE = Known(
    {Sym("n"): (1, 100), Sym("six"): (6, 6)},
    [multiple_of(N, 8), multiple_of(R + 4, 16), multiple_of(N // 8, 3), multiple_of(X * Y, 5)],
)


@pytest.mark.parametrize(
    ("built", "divisor", "proved"),
    [
        (N, 8, True),
        (N, 16, False),
        (N, 24, False),
        (N * C, 8, True),
        (4 * C, 4, True),
        (4 * C, 8, False),
        (4 * (N // 4), 8, True),
        (N // 4, 2, True),
        (N // 4, 4, False),
        (C // 4, 1, True),
        (N * C + R, 4, True),
        (R, 8, False),
        (R - 12, 16, True),
        (R * C + 4 * C, 4, True),
        ((N // 8) * C, 3, True),
        (N % 16, 8, True),
        (N % 3, 8, False),
        (N % 8, 7, True),
        (minimum(N, 2 * R), 8, True),
        (maximum(N, R), 8, False),
        (xor(N, 4 * C, 4), 4, True),
        (xor(N, 4 * C, 4), 8, False),
        (xor(3 * N, 16 * C, 5), 8, True),
        (3 * sym("six") * C, 18, True),
        (X * Y * C, 5, True),
        (X * C, 5, False),
    ],
)
def test_divisors(built: Expr, divisor: int, proved: bool) -> None:
    assert DIVISIBLE.multiple(built, divisor) is proved


def test_multiples_narrow_ranges_and_are_passed_on() -> None:
    assert DIVISIBLE.divides and DIVISIBLE.bounds(N) == (8, 96)
    assert not Known({Sym("six"): (6, 6)}, [Fact(0, C, N)]).divides
    assert not Known({}, [Fact(None, N % 8, 2)]).multiple(N, 8)
    both = [Fact(0, N % 8, None), Fact(0, -(N % 8), None)]
    assert Known({}, both).multiple(3 * N, 8) and Known({}, both).also([Fact(1, N, None)]).bounds(N) == (8, None)


def test_exact_floors_are_seen_through() -> None:
    tiles = [Fact(0, R, N // 8), Fact(0, C, 8), Fact(0, X, M), multiple_of(N, 8)]
    inside = Known({Sym("n"): (0, None)}, tiles)
    assert inside.nonnegative(M * N - N * X - 8 * R - C - 1) and not inside.nonnegative(M * N - N * X - 8 * R - C - 2)
    assert inside.nonnegative(N // 8 * M - N // 8 * X - R - 1) and inside.quotient(8 * R + C, N) == 0
    assert inside.nonnegative(2 * (N // 8) - N // 4) and not Known({}, tiles[:3]).nonnegative(8 * (N // 8) - N)


def test_quotients_are_in_bounds_where_the_divisor_divides() -> None:
    inside = [Fact(0, R, N), multiple_of(N, 8)]
    assert Known({}, inside).nonnegative(N // 8 - R // 8 - 1) and not Known({}, inside).nonnegative(N // 8 - R // 8 - 2)
    assert not Known({}, inside[:1]).nonnegative(N // 8 - R // 8 - 1)
    assert Known({}, [Fact(0, R, N)]).nonnegative(N - R // 8 * 8 - 1) and not Known({}, inside).nonnegative(
        N // 8 - (R + 1) // 8 - 1
    )


def test_facts_add_up() -> None:
    inside = [Fact(0, R, M), Fact(0, C, N)]
    known = Known({}, inside)
    assert known.nonnegative(M * N - R * N - C - 1) and not known.nonnegative(M * N - R * N - C - 2)
    assert known.nonnegative(R * N + C) and known.quotient(C, N) == 0 and known.quotient(R * N + C, M * N) == 0
    assert known.quotient(C + 1, N) is None and known.quotient(C, M) is None
    assert Known({}, [Fact(0, 2 * R, N)]).nonnegative(N - R - 1)
    assert Known({}, [Fact(1, R, C), Fact(0, C, N)]).positive(N - 2)
    assert not Known({}, inside).nonnegative(R * C - 1)
