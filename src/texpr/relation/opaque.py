"""Products of sizes as one parameter each: `par M * N |t|` is affine in t and in the opaque parameter `M * N`.

With opaque parameters a set admits more sizes than exist (M * N = 3 with M = N = 2), so a proof with them is sound, and a
counter-example with them still needs a witness in real sizes.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from texpr.affine.expr import Expr, Monomial, Sym, children, expr, rebuilt, term
from texpr.affine.facts import Known
from texpr.presburger.formula import TRUE, And, Eq, Formula, Ge, Or, conj, disj, leaves
from texpr.presburger.linear import is_affine


@lru_cache(maxsize=1 << 14)
def _is_affine(formula: Formula) -> bool:
    return all(map(is_affine, leaves(formula)))


class Opaque:
    """The opaque parameters of one function, created on demand; `meaning` gives the product that each stands for."""

    def __init__(self, params: Collection[Sym], known: Known):
        self.params = frozenset(params)
        self._known = known
        self.meaning: dict[Sym, Expr] = {}

    def close(self, value: Expr) -> Expr:
        """`value` with every part that is not affine, and consists of parameters only, replaced by its opaque parameter."""
        if is_affine(value):
            return value
        total = expr(value.constant)
        for monomial, coefficient in value.terms:
            total = total + self._term(monomial) * coefficient
        return total

    def close_formula(self, formula: Formula) -> tuple[Formula, bool]:
        """`formula` closed, with comparisons that are still not affine taken as true; and whether there were none of these."""
        if _is_affine(formula):
            return formula, True
        match formula:
            case Ge(value) | Eq(value):
                closed = self.close(value)
                return (type(formula)(closed), True) if is_affine(closed) else (TRUE, False)
            case And(parts) | Or(parts):
                closed_parts = [self.close_formula(p) for p in parts]
                join = conj if isinstance(formula, And) else disj
                return join(f for f, _ in closed_parts), all(exact for _, exact in closed_parts)

    def facts(self) -> Formula:
        """The opaque parameters that are never negative."""
        return And(tuple(Ge(expr(sym)) for sym, meaning in self.meaning.items() if self._known.nonnegative(meaning)))

    def _term(self, monomial: Monomial) -> Expr:
        inside = [a for a in monomial if term((a,)).syms() <= self.params]
        if len(inside) == len(monomial) and not is_affine(term(monomial)):
            return self._name(term(monomial))
        if len(monomial) > 1:
            return term(monomial)
        (atom,) = tuple(monomial)
        return rebuilt(atom, tuple(map(self.close, children(atom))))

    def _name(self, value: Expr) -> Expr:
        sym = Sym(str(value))
        self.meaning[sym] = value
        return expr(sym)
