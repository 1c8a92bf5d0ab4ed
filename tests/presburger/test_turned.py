"""Numbers by their digits: what is said twice counts once."""

from itertools import product

import pytest

from texpr.affine.expr import Expr, Sym, expr
from texpr.presburger.solve.turned import joined, solved

X, HIGH, OWN = (expr(Sym(name)) for name in ("x", "high", "own"))


def test_digits_that_a_wider_one_says_are_left_out() -> None:
    digits = {1: (32, X), 16: (2, HIGH)}
    assert joined(digits, None) is X
    assert joined({**digits, 32: (None, HIGH)}, None) is X + 32 * HIGH
    assert joined({1: (None, X), 4: (8, HIGH)}, None) is X
    assert joined({4: (8, HIGH)}, OWN) is OWN % 4 + 4 * HIGH + OWN // 32 * 32


@pytest.mark.parametrize(("a", "b", "c"), [(2, 4, 3), (4, 4, 2), (3, 2, 6), (1, 8, 2)])
def test_a_part_of_a_digit_is_a_digit(a: int, b: int, c: int) -> None:
    """However quotients and remainders stand in each other, all of them together say the number."""
    x = Sym("x")
    row, whole = expr(x) // a, expr(x) // a % (b * c)
    for parts in (
        (expr(x) % a, row % b, row // b % c, row // b // c),
        (expr(x) % a, whole % b, whole // b, row // (b * c)),
    ):
        said = [Sym(f"part {at}") for at in range(len(parts))]
        found = solved([(part, expr(sym)) for part, sym in zip(parts, said, strict=True)], {x: None})
        for number in range(2 * a * b * c + 5):
            assert found[x].evaluate({sym: part.evaluate({x: number}) for sym, part in zip(said, parts, strict=True)}) == number


def test_equations_that_determine_their_unknowns_come_first() -> None:
    """Pixels and taps: q + t is given, and so is q; the turn 4 · t + c is in a ring of four slots, and in one of eight."""
    q, t, given = Sym("q"), Sym("t"), [expr(Sym(name)) for name in ("sum", "pixel", "rest", "slot")]
    for step in (1, 2):
        pairs = [
            (step * expr(q) + expr(t) // 4 % 3, given[0]),
            (expr(q), given[1]),
            (expr(t) % 4, given[2]),
            (expr(t) % 8, given[3]),
        ]
        found = solved(pairs, {q: expr(7), t: expr(12)})
        for pixel in range(7):
            for turn in range(12):
                said = (step * pixel + turn // 4 % 3, pixel, turn % 4, turn % 8)
                values = {e.as_sym: value for e, value in zip(given, said, strict=True) if e.as_sym}
                assert (found[q].evaluate(values), found[t].evaluate(values)) == (pixel, turn)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_place_in_a_box_comes_before_taps(sign: int) -> None:
    """A pixel's place in a box has three digits, and so more unknowns than p + t has, or p − t."""
    a, b, c, t = (Sym(name) for name in "abct")
    given = [Sym(name) for name in ("down", "across", "place")]
    parts = (expr(b) + sign * (expr(t) // 3), expr(c) + sign * (expr(t) % 3), 64 * expr(a) + 8 * expr(b) + expr(c))
    found = solved(
        [(part, expr(sym)) for part, sym in zip(parts, given, strict=True)], {a: expr(2), b: expr(8), c: expr(8), t: expr(9)}
    )
    for numbers in product(range(2), range(0, 8, 3), range(0, 8, 3), range(9)):
        at = dict(zip((a, b, c, t), numbers, strict=True))
        values = {sym: part.evaluate(at) for sym, part in zip(given, parts, strict=True)}
        assert {sym: value.evaluate(values) for sym, value in found.items()} == at


def test_the_slot_of_a_ring_is_no_digit_of_a_turn() -> None:
    """Of digits of base 3 and the remainder by 4 the digits are taken; what is always 0 is none."""
    t, said = Sym("t"), [Sym(name) for name in ("none", "slot", "low", "high")]
    parts = (expr(t) // 4 % 8 // 8, expr(t) % 4, expr(t) % 3, expr(t) // 3)
    found = solved([(part, expr(sym)) for part, sym in zip(parts, said, strict=True)], {t: expr(27)})
    for number in range(27):
        values = {sym: part.evaluate({t: number}) for sym, part in zip(said, parts, strict=True)}
        assert found[t].evaluate(values) == number


@pytest.mark.parametrize("late", [0, 1, 2, 5, 13])
@pytest.mark.parametrize("bases", [(3,), (4, 3), (2, 3, 5)])
def test_digits_of_turns_that_begin_later(bases: tuple[int, ...], late: int) -> None:
    """Those of t - late, in any order of equations: however the number is shared out between quotients and what is added."""
    t, part, stride = Sym("t"), expr(Sym("t")) - late, 1
    parts = list[Expr]()
    for base in bases:
        parts.append(part // stride % base)
        stride *= base
    parts.append(part // stride)
    said = [Sym(f"digit {at}") for at in range(len(parts))]
    pairs = [(digit, expr(sym)) for digit, sym in zip(parts, said, strict=True)]
    for each in (pairs, pairs[::-1]):
        found = solved(each, {t: expr(late + 2 * stride)})
        for number in range(late, late + 2 * stride):
            values = {sym: digit.evaluate({t: number}) for sym, digit in zip(said, parts, strict=True)}
            assert found[t].evaluate(values) == number


def test_a_rotated_number_is_no_digit_of_another() -> None:
    """There is no quotient: x alone has the remainder."""
    x, given = Sym("x"), Sym("given")
    found = solved([((expr(x) + 1) % 4, expr(given))], {x: expr(4)})
    assert [found[x].evaluate({given: (number + 1) % 4}) for number in range(4)] == [*range(4)]


def test_digits_that_the_extents_of_unknowns_say_are_known() -> None:
    """Rows of a tile by warp, lane, and half: all of them together are less than 64, and a digit of eight has none of eight."""
    half, lane, turn, given = Sym("half"), Sym("lane"), Sym("turn"), [expr(Sym(name)) for name in ("high", "mid", "low")]
    warp, row = expr(lane) // 32 % 4, expr(lane) // 4 % 8
    pairs = [
        (expr(turn) + (8 * expr(half) + 16 * warp + row) // 64 + 2 * (expr(lane) // 128), given[0]),
        ((expr(half) + row // 8 + 2 * warp) % 8, given[1]),
        (row % 8, given[2]),
    ]
    found = solved([*pairs, (expr(lane) % 4, expr(0))], {half: expr(2), lane: expr(256), turn: expr(2)})
    for at in product(range(2), range(0, 256, 4), range(2)):
        point = dict(zip((half, lane, turn), at, strict=True))
        values = {e.as_sym: value.evaluate(point) for e, (value, _) in zip(given, pairs, strict=True) if e.as_sym}
        assert {sym: value.evaluate(values) for sym, value in found.items()} == point
