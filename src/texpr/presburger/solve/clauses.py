"""Formulas as rows of integers: equations, inequalities and disjunctions.

num / d, num % d   →  num = d · high + low  and  0 ≤ low < d      one symbol each, the same for equal terms
min(a, b)          →  t ≤ a and t ≤ b, and t ≥ a or t ≥ b         a symbol for t, unless it can be decomposed
i · n              →  an unknown of its own                       which only adds points
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import gcd
from typing import TypeAlias

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor, term
from texpr.presburger.formula import And, Eq, Formula, Ge, Or
from texpr.presburger.linear import NotAffine, is_affine, taken_apart
from texpr.presburger.solve.relaxed import affine
from texpr.support.record import Mutable

Terms: TypeAlias = dict[Sym, int]
"""Coefficients by symbol, none of them 0. Treated as immutable."""

Key: TypeAlias = frozenset[tuple[Sym, int]]


class Row(Mutable, eq=False):
    """constant + terms, the coefficients without a common factor; with the key of its terms, and that of its negation.

    A row of one term is a bound and has no key. Rows and clauses are treated as immutable: they are not frozen dataclasses,
    which take three times as long to make.
    """

    constant: int
    terms: Terms
    key: Key = frozenset()
    opposite: Key = frozenset()


class Clause(Mutable, eq=False):
    """A conjunction: equations, inequalities, and disjunctions of two or more alternatives."""

    equal: tuple[Row, ...] = ()
    least: tuple[Row, ...] = ()
    choices: tuple[tuple[Clause, ...], ...] = ()


_ALWAYS, NEVER = Clause(), Clause(least=(Row(-1, {}),))


@lru_cache(maxsize=1 << 14)
def clause(formula: Formula, exact: bool) -> Clause:
    """`formula` as a clause. `exact`: raises NotAffine where it is not affine; otherwise it is relaxed."""
    match formula:
        case Ge(value):
            return _comparison(value, exact)
        case Eq(value):
            return _equation(value, exact)
        case And(parts):
            return joined([clause(part, exact) for part in parts])
        case Or(parts):
            return _either([clause(part, exact) for part in _shared(parts)])


def joined(clauses: Iterable[Clause]) -> Clause:
    """The conjunction of `clauses`."""
    equal: dict[Row, None] = {}
    least: dict[Row, None] = {}
    choices: dict[tuple[Clause, ...], None] = {}
    for each in clauses:
        if each is NEVER:
            return NEVER
        for row in each.equal:
            equal[row] = None
        for row in each.least:
            least[row] = None
        for choice in each.choices:
            choices[choice] = None
    return Clause(tuple(equal), tuple(least), tuple(choices)) if equal or least or choices else _ALWAYS


def _either(parts: list[Clause]) -> Clause:
    """The disjunction of `parts`."""
    if _ALWAYS in parts:
        return _ALWAYS
    left: list[Clause] = []
    for part in parts:
        if part.choices and len(part.choices) == 1 and not part.equal and not part.least:
            left += part.choices[0]
        elif part is not NEVER:
            left.append(part)
    return Clause(choices=(tuple(left),)) if len(left) > 1 else left[0] if left else NEVER


def _comparison(value: Expr, exact: bool) -> Clause:
    if not value.is_linear:
        taken = taken_apart(_checked(value, exact))
        if not isinstance(taken, Ge):
            return clause(taken, exact)
        value = taken.expr
    constant, terms, defined = _linear(value)
    if not terms:
        return _ALWAYS if constant >= 0 else NEVER
    return Clause(defined.equal, (*defined.least, _row(constant, terms)), defined.choices)


def _equation(value: Expr, exact: bool) -> Clause:
    constant, terms, defined = _linear(_checked(value, exact))
    if constant % gcd(*terms.values()) if terms else constant:
        return NEVER
    return Clause((*defined.equal, _row(constant, terms)), defined.least, defined.choices) if terms else _ALWAYS


def _row(constant: int, terms: Terms) -> Row:
    """constant + terms ≥ 0 with the common factor of the coefficients divided out, rounding; or = 0, where that factor
    divides the constant."""
    common = gcd(*terms.values())
    if common > 1:
        constant, terms = constant // common, {sym: c // common for sym, c in terms.items()}
    if len(terms) == 1:
        return Row(constant, terms)
    return Row(constant, terms, frozenset(terms.items()), frozenset([(sym, -c) for sym, c in terms.items()]))


def _checked(value: Expr, exact: bool) -> Expr:
    if exact and not is_affine(value):
        raise NotAffine(value)
    return affine(value)


def _shared(parts: Iterable[Formula]) -> list[Formula]:
    """Alternatives with a common prefix are factored: the prefix once, then the remainders as alternatives."""
    groups: dict[Formula, list[Formula]] = {}
    for part in parts:
        first, rest = (part.parts[0], part.parts[1:]) if isinstance(part, And) and part.parts else (part, ())
        groups.setdefault(first, []).append(And(rest))
    return [first if And(()) in rests else And((first, *_going_on(rests))) for first, rests in groups.items()]


def _going_on(rests: list[Formula]) -> tuple[Formula, ...]:
    if len(rests) > 1:
        return (Or(tuple(rests)),)
    (only,) = rests
    return only.parts if isinstance(only, And) else (only,)


@lru_cache(maxsize=1 << 14)
def _linear(value: Expr) -> tuple[int, Terms, Clause]:
    """An affine expression as a row over symbols, with symbols for its floors and extrema and their definitions."""
    if value.is_linear:
        return value.constant, {atom: c for (atom, *_), c in value.terms if isinstance(atom, Sym)}, _ALWAYS
    constant, sums = value.constant, Terms()
    defined: list[Clause] = []
    for (atom, *_), coefficient in value.terms:
        if isinstance(atom, Sym):
            sums[atom] = sums.get(atom, 0) + coefficient
            continue
        at, terms, said = _meaning(atom)
        constant += coefficient * at
        defined.append(said)
        for sym, c in terms.items():
            sums[sym] = sums.get(sym, 0) + coefficient * c
    return constant, {sym: c for sym, c in sums.items() if c} if defined else sums, joined(defined)


@lru_cache(maxsize=1 << 14)
def _meaning(atom: Atom) -> tuple[int, Terms, Clause]:
    """The same of one atom."""
    match atom:
        case FloorDiv(num, den):
            start, inner, more = _linear(num)
            quotient, divisor = Sym(f"⌊{num} / {den}⌋"), den.constant
            rest, over = {**inner, quotient: -divisor}, {**{s: -c for s, c in inner.items()}, quotient: divisor}
            least = *more.least, _row(start, rest), _row(divisor - 1 - start, over)
            return 0, {quotient: 1}, Clause(more.equal, least, more.choices)
        case Mod(num, den):
            start, inner, _ = _linear(num)
            _, quotient, said = _meaning(FloorDiv(num, den))
            return start, {**inner, **{sym: -den.constant for sym in quotient}}, said
        case Min(args) | Max(args):
            sym, sign = Sym(f"⟨{term((atom,))}⟩"), 1 if isinstance(atom, Min) else -1
            parts = [_comparison((arg - sym) * sign, False) for arg in args]
            return 0, {sym: 1}, joined([*parts, _either([_comparison((sym - arg) * sign, False) for arg in args])])
        case Sym() | Xor():
            raise AssertionError("symbols mean themselves, and bits are taken apart before")
