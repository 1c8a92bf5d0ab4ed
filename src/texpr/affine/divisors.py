"""Divisors of expressions: integers that divide every value an expression takes.

A divisor of 0 means that the expression is always 0. Facts are pairs `(e, m)` with m > 0: m divides e.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd, lcm

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, Xor, term, without


class Divisors:
    """Divisors that follow from facts and from symbols with a single value; memoised."""

    __slots__ = ("_fixed", "_found", "_products", "_sums")

    def __init__(self, facts: Iterable[tuple[Expr, int]], fixed: Mapping[Sym, int]):
        self._fixed = fixed
        self._found: dict[Expr, int] = {}
        self._products: dict[Monomial, int] = {}
        self._sums: list[tuple[Expr, int]] = []
        for value, divisor in facts:
            if len(value.terms) == 1 and value.constant == 0:
                ((monomial, coefficient),) = value.terms
                self._products[monomial] = lcm(self._products.get(monomial, 1), divisor // gcd(divisor, coefficient))
            elif value.terms:
                self._sums.append((value, divisor))

    def of(self, value: Expr) -> int:
        """The greatest divisor ≥ 0 of `value` that is found: from each term, or from a fact about a sum and the remaining
        terms."""
        found = self._found.get(value)
        if found is None:
            found = self._found[value] = self._of_terms(value)  # ends the recursion
            for known, divisor in self._sums:
                lead, size = known.terms[0]
                for monomial, coefficient in value.terms:
                    rest = without(monomial, lead) if coefficient % size == 0 else None
                    if rest is not None:
                        share = term(rest, coefficient // size)
                        found = lcm(found, gcd(divisor * self._of_terms(share), self._of_terms(value - share * known)))
            self._found[value] = found
        return found

    def _of_terms(self, value: Expr) -> int:
        return gcd(value.constant, *(coefficient * self._of_product(monomial) for monomial, coefficient in value.terms))

    def _of_product(self, monomial: Monomial) -> int:
        found = 1
        for atom in monomial:
            found *= lcm(self._of_atom(atom), self._products.get((atom,), 1))
        for known, divisor in self._products.items():
            rest = without(monomial, known) if len(known) > 1 else None
            if rest is not None:
                found = lcm(found, divisor * self._of_product(rest))
        return found

    def _of_atom(self, atom: Atom) -> int:
        match atom:
            case Sym():
                return abs(self._fixed.get(atom, 1))
            case FloorDiv(num, den):
                whole = self.of(num)
                return whole // den.constant if _divides(den, whole) else 1
            case Mod(num, den):
                whole = self.of(num)
                return 0 if _divides(den, whole) else gcd(self.of(den), whole)
            case Min(args) | Max(args):
                return gcd(*map(self.of, args))
            case Xor(value, mask, bits):
                whole, flipped, size = self.of(value), self.of(mask), 1 << bits
                return whole if flipped % size == 0 else gcd(whole, flipped, size)


def _divides(den: Expr, whole: int) -> bool:
    return den.is_constant and den.constant > 0 and whole % den.constant == 0
