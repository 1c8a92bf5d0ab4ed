"""Affine relaxation of formulas: a term that is not affine becomes an unknown, one for equal terms.

That only adds points, so "there is none" remains a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, Xor, children, expr, rebuilt, term, without
from texpr.affine.linear import bitwise
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, conj, disj, leaves, rename


@lru_cache(maxsize=1 << 14)
def affine(value: Expr) -> Expr:
    """`value` with terms that are not affine replaced by unknowns."""
    total = value
    for monomial, coefficient in value.terms:
        (first, *more) = monomial
        if not more and isinstance(first, Sym):
            continue
        part = expr(Sym(f"⟪{term(monomial)}⟫")) if more else _affine_atom(first)
        if part.as_atom is not first:
            total = total - term(monomial, coefficient) + part * coefficient
    return total


def _affine_atom(atom: Atom) -> Expr:
    match atom:
        case Sym():
            return expr(atom)
        case FloorDiv(_, den) | Mod(_, den) if not (den.is_constant and den.constant > 0):
            return expr(Sym(f"⟪{term((atom,))}⟫"))
        case FloorDiv() | Mod() | Min() | Max():
            return rebuilt(atom, tuple(map(affine, children(atom))))
        case Xor():
            return affine(bitwise(atom))


def relaxed(formula: Formula) -> Formula:
    """The relaxation of `formula`: all its expressions affine."""
    match formula:
        case Ge(e):
            return Ge(affine(e))
        case Eq(e):
            return Eq(affine(e))
        case And(parts):
            return conj(map(relaxed, parts))
        case Or(parts):
            return disj(map(relaxed, parts))


def divisions(facts: Iterable[Formula]) -> list[Formula]:
    """Axioms for quotients and remainders by a symbolic divisor d > 0: x = d · ⌊x / d⌋ + x mod d, x mod d < d, ⌊x / d⌋ ≥ 0
    for x ≥ 0, and ⌊x / d⌋ ≥ n gives d · n ≤ x."""
    facts = list(facts)
    found = dict.fromkeys([each for fact in facts for each in divisions_of(fact)])
    if not found:
        return []
    every = [*(e for fact in facts for e in leaves(fact)), *(den for _, den in found)]
    products = dict.fromkeys(m for e in every for m in products_in(e))
    said: list[Formula] = []
    for num, den in found:
        quotient, rest = num // den, num % den
        some = [Ge(rest), Ge(den - rest - 1), Eq(den * quotient + rest - num), disj((Ge(-num - 1), Ge(quotient)))]
        factor = den.terms[0][0] if len(den.terms) == 1 and den is term(den.terms[0][0]) else ()
        for monomial in products if factor else ():
            left = without(monomial, factor)
            if left is not None:
                some.append(disj((Ge(term(left) - quotient - 1), Ge(num - den * term(left)))))
        for number in _compared(quotient, every):  # ⌊x / d⌋ < n where x < d · n
            some += [
                disj((Ge(number - 1 - quotient), Ge(num - den * number))),
                disj((Ge(quotient - number), Ge(den * number - 1 - num))),
            ]
        said.append(disj((Ge(-den), conj(some))))
    for monomial in products:
        for at, atom in enumerate(monomial):  # 0 · y = 0, and x · y ≥ y where 0 < x and 0 ≤ y
            one, rest = term((atom,)), term((*monomial[:at], *monomial[at + 1 :]))
            said.append(disj((Ge(one - 1), Ge(-one - 1), Eq(term(monomial)))))
            said.append(disj((Ge(-one), Ge(-rest - 1), Ge(term(monomial) - rest))))
    return said


def _compared(value: Expr, every: Sequence[Expr]) -> list[int]:
    """The numbers that `value` is compared with in expressions, and their successors."""
    found: dict[int, None] = {}
    for each in every:
        for sign in (1, -1):
            rest = each - value * sign
            if rest.is_constant:
                found |= dict.fromkeys((-sign * rest.constant, 1 - sign * rest.constant))
    return [number for number in found if number > 0]


@lru_cache(maxsize=1 << 14)
def products_in(value: Expr) -> tuple[Monomial, ...]:
    """The products in an expression, operands of extrema and of quotients by a number included."""
    inner = (part for m, _ in value.terms for atom in m if not isinstance(atom, Sym) for part in children(atom))
    return (*(m for m, _ in value.terms if len(m) > 1), *(m for part in inner for m in products_in(part)))


@lru_cache(maxsize=1 << 14)
def divisions_of(fact: Formula) -> tuple[tuple[Expr, Expr], ...]:
    """The divisions by a symbolic divisor in a formula."""
    return tuple(dict.fromkeys([each for value in leaves(fact) for each in _divided(value)]))


@lru_cache(maxsize=1 << 14)
def _divided(value: Expr) -> tuple[tuple[Expr, Expr], ...]:
    """The divisions by a symbolic divisor in an expression."""
    found: list[tuple[Expr, Expr]] = []
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, Sym):
                continue
            if isinstance(atom, FloorDiv | Mod) and not atom.den.is_constant:
                found.append((atom.num, atom.den))
            found += [each for part in children(atom) for each in _divided(part)]
    return tuple(found)


def flat(parts: Iterable[Formula]) -> Iterator[Formula]:
    """The conjuncts, nested conjunctions flattened."""
    for part in parts:
        if isinstance(part, And):
            yield from _flat(part)
        else:
            yield part


@lru_cache(maxsize=1 << 14)
def _flat(formula: And) -> tuple[Formula, ...]:
    return tuple(flat(formula.parts))


def eliminated(
    facts: list[Formula], may: Callable[[Sym], bool], *, as_sums: bool = False
) -> tuple[list[Formula], list[tuple[Sym, Expr]]]:
    """`facts` with symbols solved by equations substituted, and their definitions, each over later ones.

    Products become comparable by that: i = i' makes i * n and i' * n equal. `as_sums`: no symbol is defined as a difference.
    """
    solved: list[tuple[Sym, Expr]] = []
    at = 0
    while at < len(facts):
        fact = facts[at]
        found = defined(fact.expr, may, as_sums=as_sums) if isinstance(fact, Eq) else None
        if found is None:
            at += 1
            continue
        sym, value = found
        solved.append(found)
        facts = [rename(f, {sym: value}) for number, f in enumerate(facts) if number != at]
        facts = [f for f in facts if f != _ZERO]
        at = 0
    return facts, solved


_ZERO = Eq(expr(0))


def defined(value: Expr, may: Callable[[Sym], bool], *, as_sums: bool = False) -> tuple[Sym, Expr] | None:
    """A symbol that `value` = 0 defines, and its definition; None where there is none among those allowed by `may`."""
    for monomial, coefficient in value.terms:
        (atom, *more) = monomial
        if coefficient in (1, -1) and not more and isinstance(atom, Sym) and may(atom):
            rest = (value - term(monomial, coefficient)) * -coefficient
            if atom not in rest.syms() and not (as_sums and any(c < 0 for _, c in rest.terms)):
                return atom, rest
    return None
