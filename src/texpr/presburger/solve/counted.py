"""Unknowns that count through something together, as b + N · t counts tiles where block b has every N-th of them.

Digits of such a sum are kept in a simplified form, in which nothing is left of the sum itself:

    ⌊(b + N · t) / d⌋        is  q · t + ⌊(b + r · t) / d⌋               with N = q · d + r
    ⌊(b + N · t) / d⌋ mod m  is  ⌊(b + r · t) / d⌋ mod m                 with N = r modulo d · m

Both are undone here: the sum becomes an unknown of its own, of which other equations say the digits. From it, in turn, its
unknowns follow: t = ⌊(b + N · t) / N⌋. The results are candidates, which the caller has to prove.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from texpr.affine.expr import Expr, FloorDiv, Mod, Sym, combination, expr, term
from texpr.affine.ranges import Interval
from texpr.presburger.formula import Eq, Formula, leaves, mapped, rename
from texpr.support.record import Record

Pair: TypeAlias = tuple[Expr, Expr]


class Count(Record):
    """A sum of unknowns, and a name for it. `parts`: its unknowns with their strides, the least one first."""

    name: Sym
    parts: tuple[tuple[Sym, int], ...]

    @property
    def strides(self) -> dict[Sym, int]:
        """The stride of each unknown."""
        return dict(self.parts)

    @property
    def value(self) -> Expr:
        """The sum itself."""
        return combination(0, [((sym,), stride) for sym, stride in self.parts])

    def parted(self, total: Expr) -> dict[Sym, Expr]:
        """The unknowns where the sum is `total`."""
        strides = [*(stride for _, stride in self.parts), None]
        return {
            sym: total // stride if above is None else total // stride % (above // stride)
            for (sym, stride), above in zip(self.parts, strides[1:], strict=True)
        }

    def named(self, value: Expr) -> Expr:
        """An equal expression in which the sum has its name, where it is found."""
        if value.is_linear:
            rest = value - self.value
            return expr(self.name) + rest.constant if rest.is_constant else value
        for monomial, coefficient in value.terms:
            (atom, *more), given = monomial, None
            if more:
                continue
            if isinstance(atom, FloorDiv):
                given = self._quotient(value, atom, coefficient)
            elif isinstance(atom, Mod):
                given = self._digit(atom)
                given = None if given is None else value + (given - term(monomial)) * coefficient
            value = value if given is None else given
        return value

    def _quotient(self, value: Expr, atom: FloorDiv, coefficient: int) -> Expr | None:
        """`value` with a quotient of the sum's name instead of `atom`; None where it is no quotient of the sum."""
        taken, dividend = _whole(value, atom, coefficient, self.strides)
        given = _apart(self.value, dividend, 0)
        if given is None:
            return None
        return value - taken - term((atom,), coefficient) + (expr(self.name) + given) // atom.den * coefficient

    def _digit(self, atom: Mod) -> Expr | None:
        """A remainder as one of the sum's name; None where it is no digit of the sum."""
        if not atom.den.is_constant:
            return None
        dividend, stride = atom.num, 1
        inner = next((m[0] for m, _ in dividend.terms if len(m) == 1 and isinstance(m[0], FloorDiv)), None)
        if inner is not None and inner.den.is_constant:
            taken, dividend = _whole(dividend, inner, 1, self.strides)
            stride = inner.den.constant
            if (atom.num - taken).as_atom is not inner:
                return None
        given = _apart(self.value, dividend, stride * atom.den.constant)
        return None if given is None else (expr(self.name) + given) // stride % atom.den


def counts(pairs: Sequence[Pair], extents: Mapping[Sym, int | None]) -> Iterator[Count]:
    """The sums of several unknowns that equations contain as dividends. `extents`: of each unknown, where that is known."""
    for value, _ in pairs:
        for monomial, coefficient in value.terms:
            atom = monomial[0]
            if len(monomial) == 1 and isinstance(atom, FloorDiv) and atom.num.is_linear and len(atom.num.syms()) > 1:
                _, dividend = _whole(value, atom, coefficient, atom.num.syms())
                parts = tuple(sorted(((s, c) for (s,), c in dividend.terms if isinstance(s, Sym)), key=lambda part: part[1]))
                if parts[0][1] == 1 and all(_follows(low, high, extents) for low, high in pairwise(parts)):
                    yield Count(Sym(f"⟨{combination(0, dividend.terms)}⟩"), parts)


def in_counts(facts: Sequence[Formula], ranges: Mapping[Sym, Interval]) -> tuple[list[Formula], tuple[Count, ...]] | None:
    """Equal facts in which such sums are symbols, and each takes the place of its least part; and these sums. None where there
    is none."""
    ends = {sym: high + 1 if low == 0 and isinstance(high, int) else None for sym, (low, high) in ranges.items() if low >= 0}
    named, found = frozenset[Sym](), list[Count]()
    for count in counts([(fact.expr, expr(0)) for fact in facts if isinstance(fact, Eq)], ends):
        if named.isdisjoint(count.strides):
            named |= count.strides.keys()
            found.append(count)
    for count in found:
        least = {count.parts[0][0]: expr(count.name) - count.value + count.parts[0][0]}
        facts = [rename(mapped(fact, count.named), least) for fact in facts]
    return ([*facts], tuple(found)) if found else None


def has_digits(fact: Formula, names: frozenset[Sym]) -> bool:
    """Whether a fact is of quotients or remainders of some symbols."""
    atoms = (atom for value in leaves(fact) for monomial, _ in value.terms for atom in monomial)
    return any(not isinstance(atom, Sym) and not names.isdisjoint(term((atom,)).syms()) for atom in atoms)


def _follows(low: tuple[Sym, int], high: tuple[Sym, int], extents: Mapping[Sym, int | None]) -> bool:
    """Whether two terms are digits that do not overlap."""
    (sym, stride), (above, more) = low, high
    end = extents.get(sym)
    return above in extents and end is not None and stride * end <= more and more % stride == 0


def _whole(value: Expr, atom: FloorDiv, coefficient: int, those: Mapping[Sym, int] | frozenset[Sym]) -> tuple[Expr, Expr]:
    """The terms of `value` in symbols of `those` that were moved out of a quotient, and the dividend with them."""
    if not atom.den.is_constant:
        return expr(0), atom.num
    moved = [(m, c) for m, c in value.terms if len(m) == 1 and m[0] in those and c % coefficient == 0]
    taken = combination(0, moved)
    return taken, atom.num + combination(0, [(m, c // coefficient * atom.den.constant) for m, c in moved])


def _apart(one: Expr, other: Expr, period: int) -> Expr | None:
    """The constant by which `other` is more than `one`, up to multiples of `period`; None where it is no constant."""
    rest = other - one
    terms = [(m, c) for m, c in rest.terms if not period or c % period]
    return None if terms else expr(rest.constant)
