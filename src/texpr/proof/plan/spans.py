"""Ranges of index expressions, for the verifier alone; the compiler has its own (`affine.ranges`, `affine.magnitude`).

There are two kinds, both sound wherever the expression is computed: an interval, and a polynomial of sizes as an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import inf
from typing import TypeAlias, assert_never

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, Xor, combination, expr
from texpr.support.record import Mutable, field

Ends: TypeAlias = tuple[int | float, int | float]
"""The least and the greatest value, infinite if unbounded."""

ANY: Ends = (-inf, inf)

Top: TypeAlias = tuple[Expr, int]
"""A polynomial of sizes, and its divisor."""

_SMALL = 2**16
"""Below this a constant bound is preferred to a polynomial."""


class Spans(Mutable):
    """Ranges of symbols at one program point, and of expressions by these.

    `ends`: the intervals of symbols, and of some other atoms. `tops`: polynomials that are upper bounds of symbols.
    """

    ends: dict[Sym | Atom, Ends] = field(default_factory=dict[Sym | Atom, Ends])
    tops: dict[Sym, Top] = field(default_factory=dict[Sym, Top])
    _products: dict[Monomial, Ends] = field(default_factory=dict[Monomial, Ends])

    def copy(self) -> Spans:
        """A copy, for another program point."""
        return Spans(dict(self.ends), dict(self.tops))

    def learn(self, sym: Sym | Atom, ends: Ends, top: Top | None = None) -> None:
        """Records the interval of a symbol and, for a `Sym`, an upper bound."""
        self.ends[sym] = ends
        if top is not None and isinstance(sym, Sym):
            self.tops[sym] = top
        self._products.clear()

    def narrow(self, facts: Iterable[Expr]) -> None:
        """Narrows the intervals of symbols by `facts`, which are all at least 0, one symbol of a fact at a time."""
        for fact in facts:
            for monomial, coefficient in fact.terms:
                sym = monomial[0]
                if len(monomial) > 1 or not isinstance(sym, Sym) or sym not in self.ends:
                    continue
                rest = self.ends_of(fact - expr(sym) * coefficient)[1]
                if isinstance(rest, float):
                    continue
                lo, hi = self.ends[sym]
                if coefficient > 0:
                    self.learn(sym, (max(lo, -(rest // coefficient)), hi))
                else:
                    self.learn(sym, (lo, min(hi, rest // -coefficient)))

    def lower(self, facts: Iterable[Expr]) -> None:
        """Lowers the upper bounds of symbols by `facts`, which are all at least 0: x of x ≤ n − 1."""
        for fact in facts:
            for monomial, coefficient in fact.terms:
                sym = monomial[0]
                if len(monomial) > 1 or coefficient != -1 or not isinstance(sym, Sym) or sym not in self.tops:
                    continue
                (top, divisor), less = self.tops[sym], self.above(fact + expr(sym))
                if divisor == 1 and less is not None and _is_plain(top - less) and _is_positive(top - less):
                    self.learn(sym, self.ends.get(sym, ANY), (less, 1))

    def ends_of(self, value: Expr) -> Ends:
        """The interval of a sum of products, by the intervals of its symbols."""
        low: int | float = value.constant
        high: int | float = value.constant
        for monomial, coefficient in value.terms:
            a, b = self._product(monomial)
            if coefficient < 0:
                a, b = b, a
            low, high = low + coefficient * a, high + coefficient * b
        return (low if low >= 0 else max(low, self._rest(value))), high

    def _rest(self, value: Expr) -> int | float:
        """A lower bound of a value by the upper bounds of its symbols, if the difference is a constant.

        For x − d · b it is 1, where b is a block of ⌈x / d⌉: d · b ≤ x − 1.
        """
        left = value
        for monomial, coefficient in value.terms:
            sym = monomial[0]
            if coefficient >= 0 or len(monomial) > 1 or not isinstance(sym, Sym) or sym not in self.tops:
                continue
            top, divisor = self.tops[sym]
            if coefficient % divisor == 0:
                left = left - expr(sym) * coefficient + top * (coefficient // divisor)
        return left.constant if left.is_constant else -inf

    def _product(self, monomial: Monomial) -> Ends:
        found = self._products.get(monomial)
        if found is None:
            found = 1, 1
            for atom in dict.fromkeys(monomial):
                found = times(found, _power(self._atom(atom), monomial.count(atom)))
            self._products[monomial] = found
        return found

    def _atom(self, atom: Atom) -> Ends:
        if atom in self.ends:
            return self.ends[atom]
        match atom:
            case Sym():
                return ANY
            case FloorDiv():
                return divided(self.ends_of(atom.num), self.ends_of(atom.den))
            case Mod():
                return remainder(self.ends_of(atom.num), self.ends_of(atom.den))
            case Min() | Max():
                return reduce(least if isinstance(atom, Min) else greatest, map(self.ends_of, atom.args))
            case Xor():
                return swizzled(self.ends_of(atom.value), atom.bits)
            case _:
                assert_never(atom)

    def above(self, value: Expr) -> Expr | None:
        """A polynomial of sizes that is at least `value`, by the upper bounds of loop indices. None if none is found.

        c · p / d is at most ⌈c / d⌉ · p if p is not negative.
        """
        total = expr(value.constant)
        for monomial, coefficient in value.terms:
            plain = all(self._atom(atom)[0] >= 0 for atom in monomial)
            if plain and coefficient < 0:
                continue  # a non-negative subtrahend may be omitted
            product, divisor = expr(1), 1
            for atom in monomial:
                top = self._top(atom) if plain or (coefficient > 0 and len(monomial) == 1) else self._size(atom)
                if top is None:
                    return None
                product, divisor = product * (top[0] if plain else _positive(top[0])), divisor * top[1]
            total = total + product * -(-abs(coefficient) // divisor)
        return total

    def coarse(self) -> Spans:
        """The same with subtrahends omitted from polynomials: fewer terms, each of which a bound may have."""
        return Spans(self.ends, {sym: (_positive(top), divisor) for sym, (top, divisor) in self.tops.items()}, self._products)

    def top_of(self, value: Expr) -> Top | None:
        """The upper bound of a value with its divisor: for ⌊x / d⌋ − c, or what is less, that of x − c · d, divided by d."""
        atom, divisor = (value - value.constant).as_atom, 1
        if isinstance(atom, FloorDiv) and atom.den.is_constant and atom.den.constant > 0:
            value, divisor = atom.num + value.constant * atom.den.constant, atom.den.constant
        top = self._named(atom) if isinstance(atom, Sym) else None
        found = self.above(value) if top is None else top[0] + value.constant * top[1]
        return None if found is None else (found, divisor if top is None else top[1])

    def _top(self, atom: Atom) -> Top | None:
        """The upper bound of one atom."""
        match atom:
            case Sym():
                return self._named(atom)
            case FloorDiv() if atom.den.is_constant and atom.den.constant > 0:
                found, divisor = self.above(atom.num), atom.den.constant
                if found is not None and found.is_constant:
                    return expr(found.constant // divisor), 1
                return None if found is None else (found, divisor)
            case FloorDiv() if self.ends_of(atom.num)[0] >= 0:
                return self.top_of(atom.num)
            case Mod() if self.ends_of(atom.den)[0] >= 1:
                return self.top_of(atom.den - 1)
            case Min():
                found = [top for arg in atom.args if (top := self.top_of(arg)) is not None]
                return min(found, key=_terms, default=None)
            case _:
                return self._size(atom)

    def _named(self, sym: Sym) -> Top | None:
        """The upper bound of a symbol: a small constant, if there is one, rather than a polynomial."""
        end = self.ends.get(sym, ANY)[1]
        return (expr(int(end)), 1) if end < _SMALL else self.tops.get(sym)

    def _size(self, atom: Atom) -> Top | None:
        """A polynomial without negative coefficients that is at least |atom|."""
        match atom:
            case Sym() if self.ends.get(atom, ANY)[0] >= 0 and (found := self._named(atom)) is not None:
                return _positive(found[0]), found[1]
            case Sym():
                most = max(map(abs, self.ends.get(atom, ANY)))
                return (expr(most), 1) if isinstance(most, int) else None
            case FloorDiv(part, _) | Mod(_, part):  # both are at most |part|
                return self._both(part)
            case Min() | Max():
                sizes = [self._both(arg) for arg in atom.args]
                known = [size[0] for size in sizes if size is not None]
                return (reduce(_either, known), 1) if len(known) == len(sizes) else None
            case Xor():
                size = self._both(atom.value)
                return None if size is None else (size[0] + (1 << atom.bits), 1)
            case _:
                assert_never(atom)

    def _both(self, part: Expr) -> Top | None:
        low, high = self.ends_of(part)  # one bound suffices if the sign is known
        up, down = (expr(0) if high <= 0 else self.above(part)), (expr(0) if low >= 0 else self.above(-part))
        return None if up is None or down is None else (_positive(up) + _positive(down), 1)


def _power(base: Ends, count: int) -> Ends:
    """The interval of a power; an even power is not negative."""
    if count == 1:
        return base
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
    """The interval of a product. Values are finite, so 0 times an unbounded one is 0."""
    corners = [x * y if x and y else 0 for x in a for y in b]
    return min(corners), max(corners)


def divided(a: Ends, b: Ends) -> Ends:
    """The interval of a floored quotient; a quotient by 0 is 0."""
    if b[0] >= 1 and a[0] >= 0:
        return _floor(a[0], b[1]), _floor(a[1], b[0])
    if b[0] >= 1:
        return min(_floor(a[0], b[0]), _floor(a[0], b[1])), max(_floor(a[1], b[0]), _floor(a[1], b[1]))
    if b[0] >= 0 and a[0] >= 0:
        return 0, a[1]
    most = max(abs(a[0]), abs(a[1]))  # no divisor increases the magnitude, and floor gives at least −1
    return -max(most, 1), most


def remainder(a: Ends, b: Ends) -> Ends:
    """The interval of a floored remainder; a remainder by 0 is 0."""
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
    """The interval of a number whose lowest bits are permuted."""
    size = 1 << bits
    return (a[0] if a[0] == -inf else a[0] // size * size), (a[1] if a[1] == inf else a[1] // size * size + size - 1)


def meet(a: Ends, b: Ends) -> Ends:
    """The intersection of both."""
    return max(a[0], b[0]), min(a[1], b[1])


def _terms(top: Top) -> int:
    """The length of a polynomial, by its terms; of several bounds, short ones are the most useful."""
    return len(top[0].terms) * 2 + (top[0].constant != 0)


def _either(a: Expr, b: Expr) -> Expr:
    """An upper bound of two polynomials without negative coefficients: the greater coefficient of each monomial."""
    more = combination(max(b.constant - a.constant, 0), ((m, c) for m, c in (b - a).terms if c > 0))
    return a + more


def _positive(value: Expr) -> Expr:
    return combination(max(value.constant, 0), ((monomial, c) for monomial, c in value.terms if c > 0))


def keeps_to(value: Expr, bound: Expr, most: int) -> bool:
    """Whether a polynomial of sizes is at most `most` wherever `bound` is: by coefficients, for sizes from 0 on.

    A term is at most one of the bound with the same sizes in at least these powers: n⁴ ≤ n⁵, as n is 0 or at least 1. If the
    bound has a coefficient above `most`, and no negative one, the product of that term's sizes is 0.
    """
    if _is_plain(bound - value) and _is_positive(bound - value):
        return True
    if not _is_plain(bound) or not _is_plain(value) or not _is_positive(bound):
        return False
    given = dict(bound.terms)
    left: dict[Monomial, int | float] = {m: inf if coefficient > most else coefficient for m, coefficient in given.items()}
    for monomial, coefficient in sorted(value.terms, key=lambda each: -len(each[0])):  # fewest candidates first
        for greater in sorted((m for m in left if _is_within(monomial, m)), key=len):
            taken = min(left[greater], coefficient)
            left[greater], coefficient = left[greater] - taken, coefficient - taken
        if coefficient > 0:
            return False
    return bound.constant >= value.constant


def _is_within(one: Monomial, other: Monomial) -> bool:
    """Whether two products have the same sizes, in the first one with at most the powers of the second."""
    return set(one) == set(other) and all(one.count(size) <= other.count(size) for size in set(one))


def _is_plain(value: Expr) -> bool:
    return all(isinstance(atom, Sym) for monomial, _ in value.terms for atom in monomial)


def _is_positive(value: Expr) -> bool:
    return value.constant >= 0 and all(coefficient >= 0 for _, coefficient in value.terms)


def _floor(a: int | float, b: int | float) -> int | float:
    if isinstance(a, float):
        return a
    return (0 if a >= 0 else -1) if isinstance(b, float) else a // b
