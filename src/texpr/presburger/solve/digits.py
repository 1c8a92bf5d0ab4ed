"""Equations between flat offsets, decomposed into rows and columns.

Lemma: N · p + q = 0 and −N < q < N imply p = 0 and q = 0, since q is a multiple of N. So i · N + j = i' · N + j' gives i = i'
and j = j' where both columns j, j' lie in 0..N, for any N. An integer solver that treats products as unknowns cannot derive
that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from texpr.affine.expr import Expr, FloorDiv, Mod, Monomial, Sym, combination, term
from texpr.affine.ranges import Interval, interval
from texpr.presburger.formula import Eq, Formula, Ge, between
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.products import is_positive, parted
from texpr.presburger.solve.ranges import ranges_of
from texpr.presburger.solve.relaxed import flat

Pair: TypeAlias = tuple[Expr, Expr]


def in_digits(facts: Sequence[Formula], premises: Formula) -> list[Formula] | None:
    """`facts` with one equation decomposed, the first that can be; None where there is none. `premises` hold as well."""
    for number, fact in enumerate(facts):
        if not isinstance(fact, Eq):
            continue
        others = (*facts[:number], *facts[number + 1 :], premises)
        for size in _strides(fact.expr):
            row, column = parted(fact.expr, size)
            if all(refuted((*others, Ge(sign * column - term(size)))) for sign in (1, -1)):
                return [*facts[:number], Eq(row), Eq(column), *facts[number + 1 :]]
    return None


def in_rows(facts: Iterable[Formula], premises: Formula) -> list[Formula]:
    """`facts` with all equations decomposed that can be."""
    found = in_numbers(list(flat(facts)))
    while (apart := in_digits(found, premises)) is not None:
        found = list(flat(apart))
    return found


def below(value: Expr, size: Expr) -> Iterator[list[Formula]]:
    """Lists of conditions, each of which puts `value` into 0..size, a product of numbers.

    With value = d · row + column they are 0 ≤ column < d and 0 ≤ row < size / d.
    """
    products = [monomial for monomial, _ in size.terms if len(monomial) > 1]
    if not products:
        yield [between(0, value, size)]
    for atom in dict.fromkeys(products[0]) if products else ():
        count, rest = parted(size, (atom,))
        if rest.is_constant and rest.constant == 0:
            row, column = parted(value, (atom,))
            yield from ([between(0, column, term((atom,))), *more] for more in below(row, count))


def in_numbers(facts: Sequence[Formula]) -> list[Formula]:
    """`facts` with each equation between sums of digits of known weights decomposed, as bounds of symbols alone allow.

    With N a number: 64 · w + l = 64 · w' + l' and l, l' in 0..64 give w = w' and l = l'.
    """
    ranges, found = ranges_of(facts), list[Formula]()
    for fact in facts:
        found += map(Eq, _digits(fact.expr, ranges)) if isinstance(fact, Eq) else [fact]
    return found


def _digits(value: Expr, ranges: Mapping[Sym, Interval]) -> list[Expr]:
    """The parts of a sum all of which are 0 where it is, the most significant first."""
    for weight in sorted({abs(c) for _, c in value.terms if abs(c) > 1}, reverse=True):
        high = [(monomial, c // weight) for monomial, c in value.terms if c % weight == 0]
        if len(high) == len(value.terms):
            continue
        low = combination(value.constant, [(monomial, c) for monomial, c in value.terms if c % weight])
        least, most = interval(low, ranges)
        if -weight < least and most < weight:
            return [combination(0, high), *_digits(low, ranges)]
    return [value]


def _strides(value: Expr) -> Iterator[Monomial]:
    """The candidate strides: symbols and quotients common to every product of `value`, one by one and all together."""
    products = [monomial for monomial, _ in value.terms if len(monomial) > 1]
    common = [a for a in products[0] if isinstance(a, Sym | FloorDiv) and all(a in m for m in products)] if products else []
    yield from ((atom,) for atom in dict.fromkeys(common))
    if len(common) > 1:
        yield tuple(dict.fromkeys(common))


def whole_of(same: Sequence[Pair], first: Sequence[Formula], second: Sequence[Formula], premises: Formula) -> list[Pair]:
    """Equalities from quotient and remainder: n = n' where n / d = n' / d and n % d = n' % d. Of n = m / f the quotient is m
    / (f · d).

    `first`, `second`: the facts of either side; terms common to both are equal on both, so d is.
    """
    every = list(same)
    for one, other in every:  # `every` grows in the loop
        for left, right in every:
            over, under = left.as_atom, right.as_atom
            if not isinstance(over, Mod) or not isinstance(under, Mod) or over.den is not under.den:
                continue
            whole = over.num, under.num
            if whole not in every and _is_quotient(one, over, first, premises) and _is_quotient(other, under, second, premises):
                every.append(whole)
    return every[len(same) :]


def with_wholes(facts: Sequence[Formula], premises: Formula) -> list[Formula]:
    """`facts`, and the equalities that follow from equal quotients and remainders, to a fixed point."""
    found = list[Pair]()
    for value in (fact.expr for fact in facts if isinstance(fact, Eq)):
        if not value.constant and len(value.terms) == 2 and value.terms[0][1] == -value.terms[1][1] in (1, -1):
            (one, _), (other, _) = value.terms
            found += [(term(one), term(other)), (term(other), term(one))]
    if not any(isinstance(x.as_atom, Mod) for x, _ in found):
        return [*facts]
    return [*facts, *(Eq(x - y) for x, y in whole_of(found, facts, facts, premises))]


def _is_quotient(value: Expr, rest: Mod, facts: Sequence[Formula], premises: Formula) -> bool:
    """Whether `value` is the quotient that belongs to a remainder. No divisor is 0, and of two none is negative."""
    inner = rest.num.as_atom
    if value is rest.num // rest.den:
        return refuted((Eq(rest.den), premises)) or is_positive(rest.den, facts, premises)
    if isinstance(inner, FloorDiv) and value is inner.num // (inner.den * rest.den):
        return all(is_positive(den, facts, premises) for den in (inner.den, rest.den))
    return False
