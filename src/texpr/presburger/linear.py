"""Quasi-affine expressions → linear ones, with fresh integer unknowns for floors and extrema.

    ⌊e / d⌋         →  q           where  0 ≤ e − d·q < d              (d a positive constant)
    e % d           →  e − d·q     with the same q
    min(a, b)       →  t           where  t ≤ a, t ≤ b, and t = a or t = b
    min(a, b) ≥ 0   →  a ≥ 0 and b ≥ 0                                 (no unknown; "or" for max)
    xor(v, m, 1)    →  v + (v + m) % 2 − v % 2                         (and so for each bit)

Each rewriting is exact over the integers, and each unknown is a function of the symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor, expr, term
from texpr.affine.linear import bitwise
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, conj, disj
from texpr.support.record import Record


class NotAffine(Exception):
    """An expression multiplies symbols, or divides by something other than a positive constant."""

    def __init__(self, culprit: Expr):
        self.culprit = culprit
        super().__init__(f"`{culprit}` is not affine")


class Linear(Record):
    """A linear form over symbols and unknowns, and the constraints that define the unknowns."""

    value: Expr
    unknowns: tuple[Sym, ...] = ()
    definitions: tuple[Formula, ...] = ()


def is_affine(value: Expr) -> bool:
    """Whether `value` can stand in a formula: no products of symbols, divisors constant."""
    return value.is_linear or all(len(monomial) == 1 and _is_affine_atom(monomial[0]) for monomial, _ in value.terms)


def _is_affine_atom(atom: Atom) -> bool:
    match atom:
        case Sym():
            return True
        case FloorDiv(num, den) | Mod(num, den):
            return den.is_constant and den.constant > 0 and is_affine(num)
        case Min(args) | Max(args):
            return all(map(is_affine, args))
        case Xor(value, mask):
            return is_affine(value) and is_affine(mask)


def without_products(formula: Formula) -> Formula:
    """`formula` with an unknown for each term that is not affine, one for equal terms: a relaxation, implied by `formula`."""
    match formula:
        case Ge(value):
            return Ge(_plain(value))
        case Eq(value):
            return Eq(_plain(value))
        case And(parts):
            return conj(map(without_products, parts))
        case Or(parts):
            return disj(map(without_products, parts))


def _plain(value: Expr) -> Expr:
    total = expr(value.constant)
    for monomial, coefficient in value.terms:
        one = term(monomial)
        total = total + (one if is_affine(one) else expr(Sym(f"‹{one}›"))) * coefficient
    return total


@lru_cache(maxsize=1 << 14)
def linear(value: Expr) -> Linear:
    """`value` without floors and extrema. Raises NotAffine."""
    total = expr(value.constant)
    unknowns: dict[Sym, None] = {}
    definitions: list[Formula] = []
    for monomial, coefficient in value.terms:
        if len(monomial) != 1:
            raise NotAffine(value)
        part = _linear_atom(monomial[0], value)
        total = total + part.value * coefficient
        unknowns.update(dict.fromkeys(part.unknowns))
        definitions.extend(part.definitions)
    return Linear(total, tuple(unknowns), tuple(definitions))


def _linear_atom(atom: Atom, whole: Expr) -> Linear:
    match atom:
        case Sym():
            return Linear(expr(atom))
        case FloorDiv(num, den) | Mod(num, den):
            if not _is_positive(den):
                raise NotAffine(whole)
            inner = linear(num)
            quotient = Sym(f"⌊{num} / {den.constant}⌋")
            rest = inner.value - expr(quotient) * den
            defined = And((Ge(rest), Ge(den - 1 - rest)))
            return Linear(
                expr(quotient) if isinstance(atom, FloorDiv) else rest,
                (*inner.unknowns, quotient),
                (*inner.definitions, defined),
            )
        case Min(args) | Max(args):
            inner = [linear(a) for a in args]
            least = isinstance(atom, Min)
            unknown = Sym(f"{'min' if least else 'max'}({', '.join(map(str, args))})")
            gaps = [part.value - unknown if least else unknown - part.value for part in inner]
            return Linear(
                expr(unknown),
                (*(u for part in inner for u in part.unknowns), unknown),
                (*(d for part in inner for d in part.definitions), And(tuple(map(Ge, gaps))), Or(tuple(map(Eq, gaps)))),
            )
        case Xor():
            return linear(bitwise(atom))


def simple_extrema(formula: Formula) -> Formula:
    """The formula with `… ± min(…) ≥ 0`, `… ± max(…) ≥ 0` and `… ± ⌊x / d⌋ ≥ 0` rewritten as comparisons without them, which
    needs no unknown.

    ⌊x / d⌋ + e ≥ 0 is x + d · e ≥ 0, and e − ⌊x / d⌋ ≥ 0 is d · e + d − 1 − x ≥ 0.
    """
    match formula:
        case Ge(value):
            return taken_apart(value)
        case Eq():
            return formula
        case And(parts):
            return conj(map(simple_extrema, parts))
        case Or(parts):
            return disj(map(simple_extrema, parts))


@lru_cache(maxsize=1 << 14)
def taken_apart(value: Expr) -> Formula:
    """`value` ≥ 0 rewritten so; memoised, as the same comparisons recur."""
    for monomial, coefficient in value.terms:
        atom = monomial[0]
        if isinstance(atom, Sym) or len(monomial) > 1:
            continue
        rest = value - term(monomial, coefficient)
        if isinstance(atom, Min | Max):
            join: Callable[..., Formula] = conj if isinstance(atom, Min) == (coefficient > 0) else disj
            return join([taken_apart(rest + arg * coefficient) for arg in atom.args])
        if abs(coefficient) == 1 and isinstance(atom, FloorDiv) and _is_positive(atom.den):
            rest = rest * atom.den
            return taken_apart(rest + atom.num if coefficient > 0 else rest + (atom.den - 1) - atom.num)
    return Ge(value)


def _is_positive(value: Expr) -> bool:
    return value.is_constant and value.constant > 0
