"""Sound interval arithmetic on index expressions.

Every bound is inclusive, and `None` is "unbounded". Bounds are tight for a sum, floor, remainder by a constant, minimum,
maximum or swizzle in which no symbol occurs twice; elsewhere they may be wider, never narrower. Where a range is empty
nothing is promised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import TypeAlias, assert_never

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, Xor

Range: TypeAlias = tuple[int | None, int | None]
"""The least and the greatest value, both inclusive; `None` where there is none."""

Interval: TypeAlias = tuple[int | float, int | float]
"""A range with −∞ and ∞ for `None`. Finite ends are integers."""

EVERYTHING: Interval = (-inf, inf)


def bounds(value: Expr, ranges: Mapping[Sym, Range]) -> Range:
    """The minimum and maximum of `value` where each symbol lies in its range; a symbol without a range is unbounded."""
    return as_range(interval(value, {symbol: as_interval(ends) for symbol, ends in ranges.items()}))


def as_interval(ends: Range) -> Interval:
    """`None` becomes ±∞."""
    lo, hi = ends
    return (-inf if lo is None else lo, inf if hi is None else hi)


def as_range(ends: Interval) -> Range:
    """±∞ becomes `None`."""
    lo, hi = ends
    return (lo if isinstance(lo, int) else None, hi if isinstance(hi, int) else None)


def interval(value: Expr, known: Mapping[Sym, Interval]) -> Interval:
    """`bounds` with infinite ends."""
    low: int | float = value.constant
    high: int | float = value.constant
    for monomial, coefficient in value.terms:
        lo, hi = _atom(monomial[0], known) if len(monomial) == 1 else monomial_interval(monomial, known)
        if coefficient < 0:
            lo, hi = hi, lo
        low += coefficient * lo
        high += coefficient * hi
    return low, high


def monomial_interval(monomial: Monomial, known: Mapping[Sym, Interval]) -> Interval:
    """The interval of a product of atoms; an even power of an atom is not negative."""
    total: Interval = (1, 1)
    for atom, count in _powers(monomial):
        total = _product(total, _power(_atom(atom, known), count))
    return total


def _powers(monomial: Monomial) -> Iterator[tuple[Atom, int]]:
    """Each atom once, with its exponent; equal atoms of a monomial are neighbours."""
    at = 0
    while at < len(monomial):
        end = at + 1
        while end < len(monomial) and monomial[end] == monomial[at]:
            end += 1
        yield monomial[at], end - at
        at = end


def _atom(atom: Atom, known: Mapping[Sym, Interval]) -> Interval:
    match atom:
        case Sym():
            return known.get(atom, EVERYTHING)
        case FloorDiv():
            return _quotient(interval(atom.num, known), interval(atom.den, known))
        case Mod():
            return _remainder(interval(atom.num, known), interval(atom.den, known))
        case Min():
            ends = [interval(arg, known) for arg in atom.args]
            return min(lo for lo, _ in ends), min(hi for _, hi in ends)
        case Max():
            ends = [interval(arg, known) for arg in atom.args]
            return max(lo for lo, _ in ends), max(hi for _, hi in ends)
        case Xor():
            size = 1 << atom.bits
            return _swizzled(interval(atom.value, known), _remainder(interval(atom.mask, known), (size, size)), size)
        case _:
            assert_never(atom)


def _times(a: int | float, b: int | float) -> int | float:
    """a · b, where zero times an infinite end is zero: no value is infinite."""
    return a * b if a and b else 0


def _product(a: Interval, b: Interval) -> Interval:
    corners = [_times(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _power(base: Interval, count: int) -> Interval:
    """The interval of a power: monotone where the exponent is odd or the base keeps one sign; otherwise its minimum is 0."""
    if count == 1:
        return base
    lo, hi = base
    ends = lo**count, hi**count
    if count % 2 == 0:
        return (0 if lo <= 0 <= hi else min(ends)), max(ends)
    return ends


def _floor(num: int | float, den: int | float) -> int | float:
    """⌊num / den⌋ for den > 0, either end perhaps infinite."""
    if isinstance(num, float):
        return num if isinstance(den, int) else (0 if num > 0 else -1)
    if isinstance(den, float):
        return 0 if num >= 0 else -1
    return num // den


def _by_sign(den: Interval) -> Iterator[tuple[bool, int | float, int | float]]:
    """The positive divisors, and the magnitudes of the negative ones; zero is no divisor."""
    lo, hi = den
    if hi > 0:
        yield False, max(lo, 1), hi
    if lo < 0:
        yield True, max(-hi, 1), -lo


def _hull(parts: list[Interval]) -> Interval:
    return (min(lo for lo, _ in parts), max(hi for _, hi in parts)) if parts else EVERYTHING


def _quotient(num: Interval, den: Interval) -> Interval:
    """⌊x / d⌋ is monotone in x, and in d on each side of x = 0, so the extrema are at the corners."""
    if num[0] >= 0 and 1 <= den[0] <= den[1]:  # the common case; it needs no corners
        return _floor(num[0], den[1]), _floor(num[1], den[0])
    parts: list[Interval] = []
    for negative, least, most in _by_sign(den):
        lo, hi = (-num[1], -num[0]) if negative else num
        low = min(_floor(lo, least), _floor(lo, most))
        high = max(_floor(hi, least), _floor(hi, most))
        parts.append((low, high))
    return _hull(parts)


def _remainder(num: Interval, den: Interval) -> Interval:
    if 1 <= den[0] <= den[1]:
        return _positive_remainder(*num, *den)
    parts: list[Interval] = []
    for negative, least, most in _by_sign(den):
        lo, hi = (-num[1], -num[0]) if negative else num
        part = _positive_remainder(lo, hi, least, most)
        parts.append((-part[1], -part[0]) if negative else part)
    return _hull(parts)


def _positive_remainder(lo: int | float, hi: int | float, least: int | float, most: int | float) -> Interval:
    """x mod d for 0 < least ≤ d ≤ most: x − q · d where ⌊x / d⌋ is always q, else at most d − 1 (and x, where x ≥ 0)."""
    if least == most and isinstance(least, int) and isinstance(lo, int) and isinstance(hi, int):
        if lo // least == hi // least:
            return lo % least, hi % least
        return 0, least - 1
    if lo >= 0:
        return (lo if hi < least else 0), min(hi, most - 1)
    return 0, most - 1


def _swizzled(value: Interval, mask: Interval, size: int) -> Interval:
    """value − value mod size + (value mod size ⊕ mask): it stays in its block of `size`, so the first and the last block give
    the ends."""
    lo, hi = value
    low_mask, high_mask = int(mask[0]), int(mask[1])
    if isinstance(lo, int):
        last = hi % size if isinstance(hi, int) and lo // size == hi // size else size - 1
        least = lo - lo % size + _least_xor(lo % size, last, low_mask, high_mask)
    else:
        least = lo
    if isinstance(hi, int):
        first = lo % size if isinstance(lo, int) and lo // size == hi // size else 0
        most = hi - hi % size + size - 1 - _least_xor(first, hi % size, size - 1 - high_mask, size - 1 - low_mask)
    else:
        most = hi
    return least, most


def _least_xor(a: int, b: int, c: int, d: int) -> int:
    """The least x ⊕ y for 0 ≤ a ≤ x ≤ b and 0 ≤ c ≤ y ≤ d (Warren, Hacker's Delight, section 4-3)."""
    for place in reversed(range(max(b, d).bit_length())):
        bit = 1 << place
        if ~a & c & bit:
            raised = (a | bit) & -bit
            a = raised if raised <= b else a
        elif a & ~c & bit:
            raised = (c | bit) & -bit
            c = raised if raised <= d else c
    return a ^ c
