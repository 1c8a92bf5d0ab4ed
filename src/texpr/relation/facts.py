"""Formulas → facts for cheap proofs: expressions that are never negative, products of sizes kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from texpr.affine.expr import Expr, FloorDiv, Mod, Sym, children, expr, term
from texpr.affine.facts import Fact, Known
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, conj, disj
from texpr.presburger.linear import is_affine

_QUOTIENTS = range(-3, 4)
"""What a quotient by a size may be to be looked at case by case."""


def facts_of(formulas: Iterable[Formula]) -> Iterator[Expr]:
    """Expressions that are ≥ 0 where all of `formulas` hold; alternatives say nothing."""
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
    """`facts`, and of each ⌊x / d⌋ + e ≥ 0 also that x + d · e ≥ 0."""
    for fact in facts:
        yield fact
        for monomial, coefficient in fact.terms:
            atom = monomial[0] if len(monomial) == 1 and coefficient == 1 else None
            if isinstance(atom, FloorDiv) and atom.den.is_constant and atom.den.constant > 0:
                yield atom.num + (fact - term(monomial)) * atom.den


def in_loop(sym: Sym, extent: Expr) -> Iterator[Expr]:
    """What is ≥ 0 in a loop of `sym` below `extent`; of an extent ⌊x / d⌋ + e also that d · (sym + 1 − e) ≤ x."""
    yield expr(sym)
    yield from unfloored((extent - 1 - sym,))


def known(facts: Iterable[Expr]) -> Known:
    """What `facts` let one prove. Symbols that a fact bounds by a constant get that as their range."""
    return _known(tuple(dict.fromkeys(facts)))


@lru_cache(maxsize=1024)
def _known(facts: tuple[Expr, ...]) -> Known:
    """The same loops are asked about again and again, and what was proved of them is remembered."""
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
    """That `name` is x mod d, where `value` is that and the quotient is one of a few numbers: then each is a case, and affine.

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


def divisions(values: Iterable[Expr], known: Known) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """Each divisor in `values` that is not constant but proved positive, with what floor and remainder promise.

    d · ⌊x / d⌋ ≤ x < d · ⌊x / d⌋ + d,  0 ≤ x % d < d
    """
    for value in values:
        for monomial, _ in value.terms:
            for atom in monomial:
                if isinstance(atom, FloorDiv | Mod) and not atom.den.is_constant and known.positive(atom.den):
                    here = term((atom,))
                    rest = here if isinstance(atom, Mod) else atom.num - atom.den * here
                    yield atom.den, (rest, atom.den - 1 - rest)
                yield from divisions(children(atom), known)
