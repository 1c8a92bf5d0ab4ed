"""Sums of products of powers and exponentials, Σ pᵢ · e^hᵢ with polynomials pᵢ and hᵢ: equality over the reals, decided.

    exp(s * scale - m) * v           { s·scale − m: v }
    exp2(s - m)                      { ln2·s − ln2·m: 1 }

*Theorem.* Let h₁ … hₙ be different polynomials over the reals without a constant, and p₁ … pₙ polynomials, not 0. Then
Σ pᵢ · e^hᵢ is not 0. (Functions e^h with different h, and no constant, are independent over the field of rational functions:
Ax 1971 for power series; that reciprocals and other functions of values are atoms makes equality stricter, never looser.)
So two sums that are equal as maps of exponents to polynomials are equal, and others are not, as far as their atoms are
independent. ln 2 is an atom, too, and constants of exponents stay in these.

Conversions between floats, and the rounding of operations, are not seen: this is about what is meant, over the reals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import isfinite
from typing import TypeAlias

from texpr.ir.value import Cast, Index, Literal, Load, Op, Ref, Value
from texpr.support.record import Record

Monomial: TypeAlias = tuple[tuple[str, int], ...]
"""Atoms with their powers, sorted."""

Poly: TypeAlias = frozenset[tuple[Monomial, Fraction]]
"""Monomials with their coefficients, none of which is 0."""

ZERO: Poly = frozenset()
ONE: Poly = frozenset({((), Fraction(1))})
LN2 = "ln 2"


class Sum(Record):
    """Polynomials by their exponents: neither is written twice, and no polynomial is 0."""

    terms: frozenset[tuple[Poly, Poly]]

    def __add__(self, other: Sum) -> Sum:
        return _sum((*self.terms, *other.terms))

    def __mul__(self, other: Sum) -> Sum:
        return _sum((plus(h, k), times(p, q)) for h, p in self.terms for k, q in other.terms)

    @property
    def plain(self) -> Poly | None:
        """The polynomial, if there are no exponentials."""
        return ZERO if not self.terms else next((p for h, p in self.terms if h == ZERO and len(self.terms) == 1), None)

    def mentions(self, name: str) -> bool:
        """Whether an atom occurs, or is part of one."""
        return any(name in each for h, p in self.terms for each in names(h) | names(p))

    def __str__(self) -> str:
        return " + ".join(sorted(f"({_text(p)}) e^({_text(h)})" if h else _text(p) for h, p in self.terms)) or "0"


Meant: TypeAlias = Callable[[Load | Ref], Sum | None]
"""What an element or a value is, where that is known; otherwise it is an atom."""


def plus(one: Poly, other: Poly) -> Poly:
    """The sum of polynomials."""
    return _poly((*one, *other))


def times(one: Poly, other: Poly) -> Poly:
    """The product of polynomials."""
    return _poly((_joined(m, n), a * b) for m, a in one for n, b in other)


def scaled(one: Poly, factor: Fraction | int) -> Poly:
    """A polynomial times a number."""
    return _poly((m, a * factor) for m, a in one)


def atom(name: str) -> Sum:
    """An atom alone."""
    return of_poly(frozenset({(((name, 1),), Fraction(1))}))


def of_poly(poly: Poly) -> Sum:
    """A polynomial, without exponentials."""
    return Sum(frozenset({(ZERO, poly)} if poly else ()))


def power(exponent: Poly) -> Sum:
    """e to a polynomial."""
    return Sum(frozenset({(exponent, ONE)}))


def slope(poly: Poly, name: str) -> Poly | None:
    """The coefficient of an atom in which a polynomial is linear."""
    found = list[tuple[Monomial, Fraction]]()
    for monomial, factor in poly:
        powers = dict(monomial)
        degree = powers.pop(name, 0)
        if degree > 1:
            return None
        if degree:
            found.append((tuple(sorted(powers.items())), factor))
    return _poly(found)


def names(poly: Poly) -> frozenset[str]:
    """The atoms of a polynomial."""
    return frozenset(name for monomial, _ in poly for name, _ in monomial)


def meaning(value: Value, meant: Meant) -> Sum:
    """A value of floats as a sum."""
    match value:
        case Literal(number) if value.dtype.is_float and isfinite(number):
            return of_poly(_poly([((), Fraction(number))]))
        case Load() | Ref():
            known = meant(value)
            return atom(_key(value, meant)) if known is None else known
        case Cast(arg) if arg.dtype.is_float and value.dtype.is_float:
            return meaning(arg, meant)
        case Op(name, args) if value.dtype.is_float:
            return _operation(name, args, meant) or atom(_key(value, meant))
        case _:
            return atom(_key(value, meant))


def _operation(name: str, args: tuple[Value, ...], meant: Meant) -> Sum | None:
    """An operation that sums are closed under."""
    match name:
        case "add" | "sub":
            first, second = (meaning(each, meant) for each in args)
            return first + (second if name == "add" else _negative(second))
        case "mul":
            first, second = (meaning(each, meant) for each in args)
            return first * second
        case "fma":
            first, second, third = (meaning(each, meant) for each in args)
            return first * second + third
        case "neg":
            return _negative(meaning(args[0], meant))
        case "div":
            return meaning(args[0], meant) * _inverse(meaning(args[1], meant))
        case "exp" | "exp2":
            exponent = meaning(args[0], meant).plain
            log = of_poly(ONE) if name == "exp" else atom(LN2)
            whole = None if exponent is None else (of_poly(exponent) * log).plain
            return None if whole is None else power(whole)
        case _:
            return None


def _negative(value: Sum) -> Sum:
    return value * of_poly(_poly([((), Fraction(-1))]))


def _inverse(value: Sum) -> Sum:
    """The reciprocal: of a number, or as an atom."""
    poly = value.plain
    if poly is not None and len(poly) == 1 and names(poly) == frozenset():
        ((_, factor),) = poly
        return of_poly(_poly([((), 1 / factor)]))
    return atom(f"1 / ({value})")


def _key(value: Value, meant: Meant) -> str:
    """The name of a value that is an atom: equal ones are of equal values."""
    match value:
        case Load():
            data = ", ".join(f"{sym}: {_key(each, meant)}" for sym, each in value.data)
            return f"{value.buffer.name}[{', '.join(map(str, value.index))}]{f' where {data}' if data else ''}"
        case Ref(sym):
            return f"⟨{sym}⟩"
        case Index(index):
            return f"{value.dtype.name}({index})"
        case Literal(number):
            return f"{value.dtype.name} {number!r}"
        case Cast(arg):
            return f"{value.dtype.name}({_inner(arg, meant)})"
        case Op(name, args):
            return f"{name}({', '.join(_inner(each, meant) for each in args)})"


def _inner(value: Value, meant: Meant) -> str:
    is_known = value.dtype.is_float and not isinstance(value, Index)
    return str(meaning(value, meant)) if is_known else _key(value, meant)


def _text(poly: Poly) -> str:
    words = ("·".join([str(factor), *(f"{name}^{power}" for name, power in monomial)]) for monomial, factor in poly)
    return " + ".join(sorted(words)) or "0"


def _joined(one: Monomial, other: Monomial) -> Monomial:
    powers: dict[str, int] = dict(one)
    for name, power in other:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


def _poly(terms: Iterable[tuple[Monomial, Fraction]]) -> Poly:
    found: dict[Monomial, Fraction] = {}
    for monomial, factor in terms:
        found[monomial] = found.get(monomial, Fraction(0)) + factor
    return frozenset((monomial, factor) for monomial, factor in found.items() if factor)


def _sum(terms: Iterable[tuple[Poly, Poly]]) -> Sum:
    made: dict[Poly, Poly] = {}
    for exponent, poly in terms:
        made[exponent] = plus(made.get(exponent, ZERO), poly)
    return Sum(frozenset((exponent, poly) for exponent, poly in made.items() if poly))
