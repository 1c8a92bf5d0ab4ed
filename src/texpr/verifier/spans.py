"""Ranges of index expressions, for the verifier alone: what compiles them has its own (`affine.ranges`, `affine.magnitude`).

Two kinds, both sound wherever the expression is computed: an interval of numbers, and a polynomial of sizes from above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from math import inf
from typing import TypeAlias, assert_never

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor, combination, expr

Ends: TypeAlias = tuple[int | float, int | float]
"""The least and the greatest value, infinite where there is none."""

ANY: Ends = (-inf, inf)


def ends_of(value: Expr, known: Mapping[Sym | Atom, Ends]) -> Ends:
    """The interval of a sum of products, each symbol in its own."""
    total: Ends = value.constant, value.constant
    for monomial, coefficient in value.terms:
        product: Ends = coefficient, coefficient
        for atom in dict.fromkeys(monomial):
            product = times(product, _power(_atom(atom, known), monomial.count(atom)))
        total = plus(total, product)
    return total


def _power(base: Ends, count: int) -> Ends:
    """The interval of a number that is multiplied by itself; an even power is not negative."""
    found: Ends = 1, 1
    for _ in range(count):
        found = times(found, base)
    return (max(found[0], 0), found[1]) if count % 2 == 0 else found


def plus(a: Ends, b: Ends) -> Ends:
    """The interval of a sum."""
    return a[0] + b[0], a[1] + b[1]


def minus(a: Ends, b: Ends) -> Ends:
    """The interval of a difference."""
    return a[0] - b[1], a[1] - b[0]


def times(a: Ends, b: Ends) -> Ends:
    """The interval of a product. No value is infinite, so 0 times one without an end is 0."""
    corners = [x * y if x and y else 0 for x in a for y in b]
    return min(corners), max(corners)


def divided(a: Ends, b: Ends) -> Ends:
    """The interval of a floored quotient, a quotient by 0 being 0."""
    if b[0] >= 1 and a[0] >= 0:
        return _floor(a[0], b[1]), _floor(a[1], b[0])
    if b[0] >= 1:
        return min(_floor(a[0], b[0]), _floor(a[0], b[1])), max(_floor(a[1], b[0]), _floor(a[1], b[1]))
    if b[0] >= 0 and a[0] >= 0:
        return 0, a[1]
    most = max(abs(a[0]), abs(a[1]))  # no divisor makes it greater, and a floor adds no more than up to −1
    return -max(most, 1), most


def remainder(a: Ends, b: Ends) -> Ends:
    """The interval of a floored remainder, a remainder by 0 being 0."""
    least, most = min(b[0] + 1, 0), max(b[1] - 1, 0)
    if a[0] >= 0 and b[0] >= 0:
        return 0, min(most, a[1])
    return least, most


def least(a: Ends, b: Ends) -> Ends:
    """The interval of a minimum."""
    return min(a[0], b[0]), min(a[1], b[1])


def greatest(a: Ends, b: Ends) -> Ends:
    """The interval of a maximum."""
    return max(a[0], b[0]), max(a[1], b[1])


def swizzled(a: Ends, bits: int) -> Ends:
    """The interval of a number whose lowest bits are changed."""
    size = 1 << bits
    return (a[0] if a[0] == -inf else a[0] // size * size), (a[1] if a[1] == inf else a[1] // size * size + size - 1)


def meet(a: Ends, b: Ends) -> Ends:
    """What lies in both."""
    return max(a[0], b[0]), min(a[1], b[1])


def narrowed(known: dict[Sym | Atom, Ends], facts: Iterable[Expr]) -> dict[Sym | Atom, Ends]:
    """The intervals of symbols where every one of `facts` is at least 0, by one symbol of each fact at a time."""
    for fact in facts:
        for monomial, coefficient in fact.terms:
            sym = monomial[0]
            if len(monomial) > 1 or not isinstance(sym, Sym) or sym not in known:
                continue
            rest = ends_of(fact - expr(sym) * coefficient, known)[1]
            if isinstance(rest, float):
                continue
            lo, hi = known[sym]
            if coefficient > 0:
                known[sym] = max(lo, -(rest // coefficient)), hi
            else:
                known[sym] = lo, min(hi, rest // -coefficient)
    return known


Top: TypeAlias = tuple[Expr, int]
"""A polynomial of sizes, and what it is divided by."""


_SMALL = 2**16
"""Below this a number says more than what it is made of."""


def above(value: Expr, tops: Mapping[Sym, Top], known: Mapping[Sym | Atom, Ends]) -> Expr | None:
    """A polynomial of sizes that is at least `value`: each loop's symbol at its greatest. None where none is found.

    c · p / d is at most ⌈c / d⌉ · p, where p is not negative.
    """
    total = expr(value.constant)
    for monomial, coefficient in value.terms:
        plain = all(_atom(atom, known)[0] >= 0 for atom in monomial)
        if plain and coefficient < 0:
            continue  # what is subtracted is not negative, and may be left out
        product, divisor = expr(1), 1
        for atom in monomial:
            top = _top(atom, tops, known) if plain or (coefficient > 0 and len(monomial) == 1) else _size(atom, tops, known)
            if top is None:
                return None
            product, divisor = product * (top[0] if plain else _positive(top[0])), divisor * top[1]
        total = total + product * -(-abs(coefficient) // divisor)
    return total


def coarse(tops: Mapping[Sym, Top]) -> dict[Sym, Top]:
    """The same with what is subtracted left out: fewer terms, each of which a bound may have."""
    return {sym: (_positive(top), divisor) for sym, (top, divisor) in tops.items()}


def top_of(value: Expr, tops: Mapping[Sym, Top], known: Mapping[Sym | Atom, Ends]) -> Top | None:
    """The same with its divisor: of ⌊x / d⌋ − c what is above x − c · d, by d."""
    for monomial, coefficient in value.terms:
        match monomial:
            case (FloorDiv(num, den),) if coefficient == 1 and len(value.terms) == 1 and den.is_constant and den.constant > 0:
                found = above(num + value.constant * den.constant, tops, known)
                return None if found is None else (found, den.constant)
            case _:
                pass
    found = above(value, tops, known)
    return None if found is None else (found, 1)


def _top(atom: Atom, tops: Mapping[Sym, Top], known: Mapping[Sym | Atom, Ends]) -> Top | None:
    """What one atom is at most."""
    match atom:
        case Sym():
            return _named(atom, tops, known)
        case FloorDiv() if atom.den.is_constant and atom.den.constant > 0:
            found = above(atom.num, tops, known)
            return None if found is None else (found, atom.den.constant)
        case FloorDiv() if ends_of(atom.num, known)[0] >= 0:
            return top_of(atom.num, tops, known)
        case Mod() if ends_of(atom.den, known)[0] >= 1:
            return top_of(atom.den - 1, tops, known)
        case Min():
            found = [top for arg in atom.args if (top := top_of(arg, tops, known)) is not None]
            return min(found, key=_terms, default=None)
        case _:
            return _size(atom, tops, known)


def _terms(top: Top) -> int:
    """How many numbers a polynomial has, but 0; any of several will do, and short ones end best."""
    return len(top[0].terms) * 2 + (top[0].constant != 0)


def _named(sym: Sym, tops: Mapping[Sym, Top], known: Mapping[Sym | Atom, Ends]) -> Top | None:
    """What a symbol is at most: a small number, where there is one, rather than a polynomial."""
    end = known.get(sym, ANY)[1]
    return (expr(int(end)), 1) if end < _SMALL else tops.get(sym)


def _size(atom: Atom, tops: Mapping[Sym, Top], known: Mapping[Sym | Atom, Ends]) -> Top | None:
    """A polynomial with no negative coefficient that is at least |atom|."""
    match atom:
        case Sym() if known.get(atom, ANY)[0] >= 0 and (found := _named(atom, tops, known)) is not None:
            return _positive(found[0]), found[1]
        case Sym():
            most = max(map(abs, known.get(atom, ANY)))
            return (expr(most), 1) if isinstance(most, int) else None
        case FloorDiv(part, _) | Mod(_, part):  # a quotient is no greater than what is divided, a remainder than what divides
            return _both(part, tops, known)
        case Min() | Max():
            sizes = [_both(arg, tops, known) for arg in atom.args]
            found = [size[0] for size in sizes if size is not None]
            return (reduce(_either, found), 1) if len(found) == len(sizes) else None
        case Xor():
            size = _both(atom.value, tops, known)
            return None if size is None else (size[0] + (1 << atom.bits), 1)
        case _:
            assert_never(atom)


def _either(a: Expr, b: Expr) -> Expr:
    """A polynomial that neither of two with no negative coefficient exceeds: the greater coefficient of each monomial."""
    more = combination(max(b.constant - a.constant, 0), ((m, c) for m, c in (b - a).terms if c > 0))
    return a + more


def _both(value: Expr, tops: Mapping[Sym, Top], known: Mapping[Sym | Atom, Ends]) -> Top | None:
    up, down = above(value, tops, known), above(-value, tops, known)
    return None if up is None or down is None else (_positive(up) + _positive(down), 1)


def _positive(value: Expr) -> Expr:
    return combination(max(value.constant, 0), ((monomial, c) for monomial, c in value.terms if c > 0))


def keeps_to(value: Expr, bound: Expr, most: int) -> bool:
    """Whether a polynomial of sizes is at most `most` wherever another is: coefficient by coefficient, for sizes from 0 on.

    Where the bound has a coefficient above `most`, and none that is negative, the product of that term's sizes is 0.
    """
    if _is_plain(bound - value) and _is_positive(bound - value):
        return True
    if not _is_plain(bound) or not _is_plain(value) or not _is_positive(bound):
        return False
    given = dict(bound.terms)
    terms = (given.get(monomial, 0) >= min(coefficient, most + 1) for monomial, coefficient in value.terms)
    return bound.constant >= value.constant and all(terms)


def _is_plain(value: Expr) -> bool:
    return all(isinstance(atom, Sym) for monomial, _ in value.terms for atom in monomial)


def _is_positive(value: Expr) -> bool:
    return value.constant >= 0 and all(coefficient >= 0 for _, coefficient in value.terms)


def _atom(atom: Atom, known: Mapping[Sym | Atom, Ends]) -> Ends:
    if not isinstance(atom, Sym) and atom in known:
        return known[atom]
    match atom:
        case Sym():
            return known.get(atom, ANY)
        case FloorDiv():
            return divided(ends_of(atom.num, known), ends_of(atom.den, known))
        case Mod():
            return remainder(ends_of(atom.num, known), ends_of(atom.den, known))
        case Min() | Max():
            join = least if isinstance(atom, Min) else greatest
            first, *rest = (ends_of(arg, known) for arg in atom.args)
            for other in rest:
                first = join(first, other)
            return first
        case Xor():
            return swizzled(ends_of(atom.value, known), atom.bits)
        case _:
            assert_never(atom)


def _floor(a: int | float, b: int | float) -> int | float:
    if isinstance(a, float):
        return a
    return (0 if a >= 0 else -1) if isinstance(b, float) else a // b
