"""Formulas → facts for cheap proofs: expressions that are never negative, products of sizes included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, children, expr, term, without
from texpr.affine.facts import Fact, Known
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, conj, disj
from texpr.presburger.linear import is_affine

_MOST_TERMS = 64
"""The number of terms that a product made for a proof may have."""
_QUOTIENTS = range(-3, 4)
"""The quotients by a size that are examined case by case."""


def facts_of(formulas: Iterable[Formula]) -> Iterator[Expr]:
    """The expressions that are ≥ 0 where all of `formulas` hold; disjunctions contribute nothing."""
    for formula in formulas:
        yield from _facts(formula)


@lru_cache(maxsize=1 << 14)
def _facts(formula: Formula) -> tuple[Expr, ...]:
    match formula:
        case Ge(value):
            return (value,)
        case Eq(value):
            return value, -value
        case And(parts):
            return tuple(facts_of(parts))
        case Or():
            return ()


def unfloored(facts: Iterable[Expr]) -> Iterator[Expr]:
    """`facts`, and for each ⌊x / d⌋ + e ≥ 0 also x + d · e ≥ 0."""
    for fact in facts:
        yield fact
        for monomial, coefficient in fact.terms:
            atom = monomial[0] if len(monomial) == 1 and coefficient == 1 else None
            if isinstance(atom, FloorDiv) and atom.den.is_constant and atom.den.constant > 0:
                yield atom.num + (fact - term(monomial)) * atom.den


def in_loop(sym: Sym, extent: Expr) -> Iterator[Expr]:
    """The expressions that are ≥ 0 in a loop of `sym` below `extent`; for an extent ⌊x / d⌋ + e also d · (sym + 1 − e) ≤ x."""
    yield expr(sym)
    yield from unfloored((extent - 1 - sym,))


def known(facts: Iterable[Expr]) -> Known:
    """`facts` as `Known`. A bound of a symbol by a constant becomes its range."""
    return _known(tuple(dict.fromkeys(facts)))


@lru_cache(maxsize=1024)
def _known(facts: tuple[Expr, ...]) -> Known:
    """Memoised, as the same loops recur; the proofs are then shared, too."""
    least: dict[Sym, int] = {}
    most: dict[Sym, int] = {}
    rest: list[Fact] = []
    for fact in facts:
        below, above = (fact - fact.constant).as_sym, (fact.constant - fact).as_sym
        if below is not None:
            least[below] = max(least.get(below, -fact.constant), -fact.constant)
        elif above is not None:
            most[above] = min(most.get(above, fact.constant), fact.constant)
        else:
            rest.append(Fact(0, fact, None))
    return Known({s: (least.get(s), most.get(s)) for s in (*least, *most)}, rest)


def remainder(value: Expr, name: Sym, facts: tuple[Expr, ...]) -> Formula | None:
    """That `name` is `value` = x mod d, as an affine formula by cases of the quotient, where that is one of a few numbers;
    else None.

    (i + d − 1) mod d, say, is i − 1 or, at i = 0, d − 1.
    """
    atom = value.as_atom
    if not isinstance(atom, Mod) or not is_affine(atom.num) or not is_affine(atom.den):
        return None
    given = known(facts)
    lowest = next((q for q in reversed(_QUOTIENTS) if given.nonnegative(atom.num - atom.den * q)), None)
    highest = next((q for q in _QUOTIENTS if given.nonnegative(atom.den * (q + 1) - 1 - atom.num)), None)
    if lowest is None or highest is None or not given.positive(atom.den):
        return None
    cases = (Eq(atom.num - atom.den * q - name) for q in range(lowest, highest + 1))
    return conj((Ge(expr(name)), Ge(atom.den - 1 - name), disj(cases)))


def never_negative(values: Iterable[Expr], facts: Iterable[Expr]) -> bool:
    """Whether all of `values` are proved to be ≥ 0, quotients by sizes and extrema taken apart.

    For a quotient d · ⌊x / d⌋ ≤ x < d · ⌊x / d⌋ + d is used where d ≥ 1; v ≥ 0 is also proved as d · v + d − 1 ≥ 0.
    """
    wanted = tuple(values)
    prover = _Prover(tuple(facts))
    for value in wanted:
        prover.look_into(value)
    return all(map(prover.proves, wanted))


class _Prover:
    """Facts, extended by the definitions of floor and remainder for each divisor that is proved positive."""

    def __init__(self, facts: tuple[Expr, ...]):
        self.facts = facts
        self.known = known(facts)
        self.dens: list[Expr] = []
        self.whole: list[tuple[Monomial, Expr]] = []  # products d · ⌊x / d⌋ that equal x, as d divides it
        self.seen: set[Atom] = set()

    def look_into(self, value: Expr) -> None:
        """Adds the facts for every division in `value`, innermost first."""
        for atom in (atom for monomial, _ in value.terms for atom in monomial if atom not in self.seen):
            self.seen.add(atom)
            for part in children(atom):
                self.look_into(part)
            if isinstance(atom, FloorDiv | Mod) and not atom.den.is_constant and self.proves(atom.den - 1):
                self._learn(atom.num, atom.den)

    def _learn(self, num: Expr, den: Expr) -> None:
        quotient, left = num // den, num % den
        rest = num - den * quotient
        said = [rest, den - 1 - rest, left, den - 1 - left, left - rest, rest - left]
        atom = quotient.as_atom
        single = len(den.terms) == 1 and den.terms[0][1] == 1 and den.constant == 0
        if single and isinstance(atom, FloorDiv) and self.known.nonnegative(-left):
            self.whole.append(((*den.terms[0][0], atom), atom.num))
        self.facts = (*self.facts, *said)
        self.known = known(self.facts)
        self.dens += [den] if den not in self.dens else []

    def proves(self, value: Expr) -> bool:
        """Whether `value` ≥ 0 is proved."""
        cases = _of_extrema(value)
        if cases is not None:
            join, values = cases
            return join(map(self.proves, values))
        dens = (den for den in self.dens if len(den.terms) * len(value.terms) <= _MOST_TERMS)
        return self._proves(value) or any(self._proves(den * value + den - 1) for den in dens)

    def _proves(self, value: Expr) -> bool:
        for product, number in self.whole:
            for monomial, coefficient in value.terms:
                rest = without(monomial, product)
                if rest is not None:
                    value = value - term(monomial, coefficient) + term(rest, coefficient) * number
        return self.known.nonnegative(value)


def _of_extrema(value: Expr) -> tuple[Callable[[Iterable[bool]], bool], list[Expr]] | None:
    """c · max(a, b) + r ≥ 0: for c > 0 where c · a + r ≥ 0 or c · b + r ≥ 0, for c < 0 where both are; dually for a minimum."""
    for monomial, coefficient in value.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Min | Max):
            rest = value - term(monomial, coefficient)
            join = any if isinstance(monomial[0], Max) == (coefficient > 0) else all
            return join, [rest + arg * coefficient for arg in monomial[0].args]
    return None
