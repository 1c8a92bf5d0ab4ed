"""Upper bounds of index expressions as polynomials of sizes, for checks before a launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor, combination, expr, term
from texpr.affine.facts import Known

Top: TypeAlias = tuple[Expr, int]
"""An upper bound: a polynomial of sizes with positive coefficients, and its divisor."""


def upper(value: Expr, tops: Mapping[Sym, Top], known: Known) -> Expr | None:
    """A polynomial with positive coefficients that is at least `value` at each of its evaluations; None where there is none.

    `tops` maps each symbol to an upper bound of its magnitude; a size bounds itself. Data, which no size bounds, have none.
    """
    total = expr(max(value.constant, 0))
    for monomial, coefficient in value.terms:
        if coefficient < 0 and known.nonnegative(term(monomial)):
            continue
        product, divisor = expr(1), 1
        for atom in monomial:
            factor = _atom(atom, tops, known)
            if factor is None:
                return None
            product, divisor = product * factor[0], divisor * factor[1]
        total = total + product * -(-abs(coefficient) // divisor)  # c · p / d is at most ⌈c / d⌉ · p
    return total


def magnitude(value: Expr, tops: Mapping[Sym, Top], known: Known) -> Top | None:
    """As `upper`, of |value|."""
    atom = value.as_atom
    if isinstance(atom, FloorDiv) and atom.den.is_constant and atom.den.constant > 0 and known.nonnegative(atom.num):
        above = upper(atom.num, tops, known)
        return None if above is None else (above, atom.den.constant)
    above = upper(value, tops, known)
    if above is None or known.nonnegative(value):
        return None if above is None else (above, 1)
    below = upper(-value, tops, known)
    return None if below is None else (above + below, 1)


def clamped(value: Expr, most: int) -> Expr:
    """The polynomial with numbers above `most` + 1 clamped to that: it is at most `most` for the same sizes ≥ 0."""
    terms = ((monomial, min(coefficient, most + 1)) for monomial, coefficient in value.terms)
    return combination(min(value.constant, most + 1), terms)


def _atom(atom: Atom, tops: Mapping[Sym, Top], known: Known) -> Top | None:
    match atom:
        case Sym():
            return tops.get(atom)
        case FloorDiv() if atom.den.is_constant and atom.den.constant > 0 and known.nonnegative(atom.num):
            above = upper(atom.num, tops, known)
            return None if above is None else (above, atom.den.constant)
        case FloorDiv():  # by convention a divisor of 0 gives 0; any other is at least 1 in magnitude
            return magnitude(atom.num, tops, known)
        case Mod():
            return magnitude(atom.den, tops, known)
        case Min() | Max():
            return _extremum(atom, tops, known)
        case Xor():
            whole = magnitude(atom.value, tops, known)
            return None if whole is None else (whole[0] + (1 << atom.bits), 1)
        case _:
            assert_never(atom)


def _extremum(atom: Min | Max, tops: Mapping[Sym, Top], known: Known) -> Top | None:
    """An upper bound of a minimum or maximum. Of a minimum of values ≥ 0 any argument bounds it: one of the lowest degree is
    taken."""
    found = [magnitude(arg, tops, known) for arg in atom.args]
    if isinstance(atom, Min) and all(map(known.nonnegative, atom.args)):
        return min((each for each in found if each is not None), key=lambda each: _degree(each[0]), default=None)
    total = expr(0)
    for each in found:
        if each is None:
            return None
        total = _greatest(total, each[0])
    return total, 1


def _greatest(a: Expr, b: Expr) -> Expr:
    """An upper bound of two polynomials without negative coefficients: the maximum of each coefficient."""
    left, right = dict(a.terms), dict(b.terms)
    terms = ((monomial, max(left.get(monomial, 0), right.get(monomial, 0))) for monomial in {**left, **right})
    return combination(max(a.constant, b.constant), terms)


def _degree(value: Expr) -> tuple[int, str]:
    return max((len(monomial) for monomial, _ in value.terms), default=0), str(value)
