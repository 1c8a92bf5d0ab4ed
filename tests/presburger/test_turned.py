"""Numbers by their digits: what is said twice counts once."""

import pytest

from texpr.affine.expr import Sym, expr
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
