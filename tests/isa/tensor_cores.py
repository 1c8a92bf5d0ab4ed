"""What a tensor core makes of one element of a product, in whole numbers: align, cut off, add, round.

Written from the papers that docs/theory/rounding.md names, and not from the record that is tested with it: of that it takes the
four parameters alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import frexp

DIGITS = {"f16": 10, "bf16": 7, "tf32": 10, "f8e4m3": 3, "f8e5m2": 2, "f32": 23}
LEAST = {"f16": -14, "bf16": -126, "tf32": -126, "f8e4m3": -6, "f8e5m2": -14, "f32": -126}


def parts(value: float, dtype: str) -> tuple[int, int]:
    """The significand as a whole number, and its exponent: value = significand · 2^(exponent − digits)."""
    if value == 0:
        return 0, -126
    _, exponent = frexp(value)
    exponent = max(exponent - 1, LEAST[dtype])
    scaled = Fraction(value) / Fraction(2) ** (exponent - DIGITS[dtype])
    assert scaled.denominator == 1, f"{value} is no {dtype}"
    return int(scaled), exponent


def cut(significand: int, places: int) -> int:
    """`significand` · 2^places, toward zero."""
    if places >= 0:
        return significand << places
    return -(-significand >> -places) if significand < 0 else significand >> -places


def rounded(units: int, unit: int, digits: int, least: int, nearest: bool) -> Fraction:
    """units · 2^unit with `digits` bits behind the leading one."""
    if units == 0:
        return Fraction(0)
    exponent = max(units.bit_length() - 1 + unit if units > 0 else (-units).bit_length() - 1 + unit, least)
    last = exponent - digits
    exact = Fraction(units) * Fraction(2) ** (unit - last)
    whole = round(exact) if nearest else int(exact)
    return whole * Fraction(2) ** last


def step(
    a: Sequence[float], b: Sequence[float], c: Fraction, of: str, into: str, aligned: int, kept: int, nearest: bool
) -> Fraction:
    """c + Σ a · b, in one step."""
    terms: list[tuple[int, int, int]] = []
    for left, right in zip(a, b, strict=True):
        (m, e), (n, f) = parts(left, of), parts(right, of)
        terms.append((m * n, e + f, 2 * DIGITS[of]))
    m, e = parts(float(c), into)
    terms.append((m, e, DIGITS[into]))
    largest = max(exponent for _, exponent, _ in terms)
    unit = largest - aligned
    total = sum(cut(m, exponent - digits - unit) for m, exponent, digits in terms)
    return rounded(total, unit, kept, LEAST[into], nearest)


def product(
    a: Sequence[float],
    b: Sequence[float],
    c: float,
    of: str,
    into: str,
    *,
    products: int,
    aligned: int,
    kept: int,
    nearest: bool,
) -> Fraction:
    """The element, `products` of each operand a step."""
    total = Fraction(c)
    for at in range(0, len(a), products):
        total = step(a[at : at + products], b[at : at + products], total, of, into, aligned, kept, nearest)
    return total
