"""Ranges of index expressions, for the verifier alone: what compiles them has its own (`affine.ranges`, `affine.magnitude`).

Two kinds, both sound wherever the expression is computed: an interval of numbers, and a polynomial of sizes from above.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import inf
from typing import TypeAlias, assert_never

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, Xor, combination, expr
from texpr.support.record import Mutable, field

Ends: TypeAlias = tuple[int | float, int | float]
"""The least and the greatest value, infinite where there is none."""

ANY: Ends = (-inf, inf)

Top: TypeAlias = tuple[Expr, int]
"""A polynomial of sizes, and what it is divided by."""

_SMALL = 2**16
"""Below this a number says more than what it is made of."""


class Spans(Mutable):
    """What is known of symbols at one place, and of expressions through them.

    `ends`: the interval of each symbol, and of some other atoms. `tops`: polynomials that symbols never exceed.
    """

    ends: dict[Sym | Atom, Ends] = field(default_factory=dict[Sym | Atom, Ends])
    tops: dict[Sym, Top] = field(default_factory=dict[Sym, Top])
    _products: dict[Monomial, Ends] = field(default_factory=dict[Monomial, Ends])

    def copy(self) -> Spans:
        """The same, of another place."""
        return Spans(dict(self.ends), dict(self.tops))

    def learn(self, sym: Sym | Atom, ends: Ends, top: Top | None = None) -> None:
        """That a symbol lies in an interval and, a `Sym`, below a polynomial."""
        self.ends[sym] = ends
        if top is not None and isinstance(sym, Sym):
            self.tops[sym] = top
        self._products.clear()

    def narrow(self, facts: Iterable[Expr]) -> None:
        """The intervals of symbols where every one of `facts` is at least 0, by one symbol of each fact at a time."""
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
        """The polynomials of symbols where every one of `facts` is at least 0, where one of them says less: x of x ≤ n − 1."""
        for fact in facts:
            for monomial, coefficient in fact.terms:
                sym = monomial[0]
                if len(monomial) > 1 or coefficient != -1 or not isinstance(sym, Sym) or sym not in self.tops:
                    continue
                (top, divisor), less = self.tops[sym], self.above(fact + expr(sym))
                if divisor == 1 and less is not None and _is_plain(top - less) and _is_positive(top - less):
                    self.learn(sym, self.ends.get(sym, ANY), (less, 1))

    def ends_of(self, value: Expr) -> Ends:
        """The interval of a sum of products, each symbol in its own."""
        low: int | float = value.constant
        high: int | float = value.constant
        for monomial, coefficient in value.terms:
            a, b = self._product(monomial)
            if coefficient < 0:
                a, b = b, a
            low, high = low + coefficient * a, high + coefficient * b
        return (low if low >= 0 else max(low, self._rest(value))), high

    def _rest(self, value: Expr) -> int | float:
        """What is left of a value at least, where its symbols are taken away at their greatest, if that is a number.

        Of x − d · b it is 1, where b is a block of ⌈x / d⌉: d · b ≤ x − 1.
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
        """A polynomial of sizes that is at least `value`: each loop's symbol at its greatest. None where none is found.

        c · p / d is at most ⌈c / d⌉ · p, where p is not negative.
        """
        total = expr(value.constant)
        for monomial, coefficient in value.terms:
            plain = all(self._atom(atom)[0] >= 0 for atom in monomial)
            if plain and coefficient < 0:
                continue  # what is subtracted is not negative, and may be left out
            product, divisor = expr(1), 1
            for atom in monomial:
                top = self._top(atom) if plain or (coefficient > 0 and len(monomial) == 1) else self._size(atom)
                if top is None:
                    return None
                product, divisor = product * (top[0] if plain else _positive(top[0])), divisor * top[1]
            total = total + product * -(-abs(coefficient) // divisor)
        return total

    def coarse(self) -> Spans:
        """The same with what is subtracted left out of polynomials: fewer terms, each of which a bound may have."""
        return Spans(self.ends, {sym: (_positive(top), divisor) for sym, (top, divisor) in self.tops.items()}, self._products)

    def top_of(self, value: Expr) -> Top | None:
        """What is above a value, with its divisor: of ⌊x / d⌋ − c what is above x − c · d, by d."""
        atom, divisor = (value - value.constant).as_atom, 1
        if isinstance(atom, FloorDiv) and atom.den.is_constant and atom.den.constant > 0:
            divisor = atom.den.constant
            value = atom.num + value.constant * divisor
        found = self.above(value)
        return None if found is None else (found, divisor)

    def _top(self, atom: Atom) -> Top | None:
        """What one atom is at most."""
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
        """What a symbol is at most: a small number, where there is one, rather than a polynomial."""
        end = self.ends.get(sym, ANY)[1]
        return (expr(int(end)), 1) if end < _SMALL else self.tops.get(sym)

    def _size(self, atom: Atom) -> Top | None:
        """A polynomial with no negative coefficient that is at least |atom|."""
        match atom:
            case Sym() if self.ends.get(atom, ANY)[0] >= 0 and (found := self._named(atom)) is not None:
                return _positive(found[0]), found[1]
            case Sym():
                most = max(map(abs, self.ends.get(atom, ANY)))
                return (expr(most), 1) if isinstance(most, int) else None
            case FloorDiv(part, _) | Mod(_, part):  # neither is greater than that
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
        low, high = self.ends_of(part)  # of what is never negative, or never positive, one side is enough
        up, down = (expr(0) if high <= 0 else self.above(part)), (expr(0) if low >= 0 else self.above(-part))
        return None if up is None or down is None else (_positive(up) + _positive(down), 1)


def _power(base: Ends, count: int) -> Ends:
    """The interval of a number that is multiplied by itself; an even power is not negative."""
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


def _terms(top: Top) -> int:
    """How many numbers a polynomial has, but 0; any of several will do, and short ones end best."""
    return len(top[0].terms) * 2 + (top[0].constant != 0)


def _either(a: Expr, b: Expr) -> Expr:
    """A polynomial that neither of two with no negative coefficient exceeds: the greater coefficient of each monomial."""
    more = combination(max(b.constant - a.constant, 0), ((m, c) for m, c in (b - a).terms if c > 0))
    return a + more


def _positive(value: Expr) -> Expr:
    return combination(max(value.constant, 0), ((monomial, c) for monomial, c in value.terms if c > 0))


def keeps_to(value: Expr, bound: Expr, most: int) -> bool:
    """Whether a polynomial of sizes is at most `most` wherever another is: coefficient by coefficient, for sizes from 0 on.

    A term is no more than one of the bound that has the same sizes, each as often or more often: n⁴ ≤ n⁵, as both are 0 or n is
    1 or more. Where the bound has a coefficient above `most`, and none that is negative, the product of that term's sizes is 0.
    """
    if _is_plain(bound - value) and _is_positive(bound - value):
        return True
    if not _is_plain(bound) or not _is_plain(value) or not _is_positive(bound):
        return False
    given = dict(bound.terms)
    left: dict[Monomial, int | float] = {m: inf if coefficient > most else coefficient for m, coefficient in given.items()}
    for monomial, coefficient in sorted(value.terms, key=lambda each: -len(each[0])):  # those first that fewer are as great as
        for greater in sorted((m for m in left if _is_within(monomial, m)), key=len):
            taken = min(left[greater], coefficient)
            left[greater], coefficient = left[greater] - taken, coefficient - taken
        if coefficient > 0:
            return False
    return bound.constant >= value.constant


def _is_within(one: Monomial, other: Monomial) -> bool:
    """Whether two products are of the same sizes, and no size is in the first one more often."""
    return set(one) == set(other) and all(one.count(size) <= other.count(size) for size in set(one))


def _is_plain(value: Expr) -> bool:
    return all(isinstance(atom, Sym) for monomial, _ in value.terms for atom in monomial)


def _is_positive(value: Expr) -> bool:
    return value.constant >= 0 and all(coefficient >= 0 for _, coefficient in value.terms)


def _floor(a: int | float, b: int | float) -> int | float:
    if isinstance(a, float):
        return a
    return (0 if a >= 0 else -1) if isinstance(b, float) else a // b
