"""Numbers by their digits: what is said twice counts once."""

from texpr.affine.expr import Sym, expr
from texpr.presburger.turned import joined

X, HIGH, OWN = (expr(Sym(name)) for name in ("x", "high", "own"))


def test_digits_that_a_wider_one_says_are_left_out() -> None:
    digits = {1: (32, X), 16: (2, HIGH)}
    assert joined(digits, None) is X
    assert joined({**digits, 32: (None, HIGH)}, None) is X + 32 * HIGH
    assert joined({1: (None, X), 4: (8, HIGH)}, None) is X
    assert joined({4: (8, HIGH)}, OWN) is OWN % 4 + 4 * HIGH + OWN // 32 * 32
