"""Does a comparison follow from others inside a nest: intervals first, then exactly by isl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from texpr.affine.expr import Atom, Expr, FloorDiv, Mod, Sym, children, expr, rebuilt, term
from texpr.affine.facts import Fact
from texpr.domain.context import Context
from texpr.presburger.formula import Formula, Ge, between, conj
from texpr.presburger.linear import is_affine
from texpr.presburger.raw import Undecided
from texpr.presburger.sets import Set


class Hypotheses:
    """What holds inside a nest, to which comparisons are added."""

    __slots__ = ("_context", "_exact", "_inside", "_leaves", "_products")

    def __init__(self, context: Context):
        self._context = context
        self._leaves = [leaf.sym for leaf in context.graph.leaves]
        self._products: dict[Expr, Sym] = {}
        self._exact = True
        self._inside: Formula | None = None

    def imply(self, margins: Sequence[Expr], claim: Expr) -> tuple[int, ...] | Literal[False] | None:
        """Which of `margins` ≥ 0 are enough for `claim` ≥ 0; False where all of them are not, None where that is open."""
        proved = self._context.known.also([Fact(0, each, None) for each in margins]).nonnegative(claim)
        answer = proved or self._decide(margins, claim)
        if answer is not True:
            return answer
        needed = list(range(len(margins)))
        for at in range(len(margins)):
            fewer = [each for each in needed if each != at]
            if self._decide([margins[each] for each in fewer], claim) is True:
                needed = fewer
        return tuple(needed)

    def _decide(self, margins: Sequence[Expr], claim: Expr) -> bool | None:
        """Exact where everything is affine. Hypotheses that are not are left out, and then only True is an answer."""
        said = [self._affine(each) for each in margins]
        usable = [each for each in said if is_affine(each)]
        claimed = self._affine(claim)
        if not is_affine(claimed):
            return None
        try:
            outside = Set.of(self._leaves, conj([self._nest(), *map(Ge, usable), Ge(-claimed - 1)]))
            if outside.is_empty():
                return True
        except Undecided:
            return None
        return False if self._exact and len(usable) == len(said) else None

    def _nest(self) -> Formula:
        """0 ≤ leaf < extent, and all that is known, as far as it is affine."""
        if self._inside is None:
            known = self._context.known
            facts = [self._affine(each) for each in known.nonnegatives()]
            loops = [between(0, leaf.sym, self._affine(leaf.extent)) for leaf in self._context.graph.leaves]
            for value, name in self._products.items():
                lo, hi = known.bounds(value)
                facts.extend([*(() if lo is None else (expr(name) - lo,)), *(() if hi is None else (hi - expr(name),))])
            usable = [each for each in facts if is_affine(each)]
            self._exact = self._exact and len(usable) == len(facts)
            self._inside = conj([*loops, *map(Ge, usable)])
        return self._inside

    def _affine(self, value: Expr) -> Expr:
        """`value` where what is made of sizes alone and is not affine has become a number of which nothing is known.

        What follows for any number follows for the one that it is, but not the other way round.
        """
        if is_affine(value):
            return value
        total = expr(value.constant)
        for monomial, coefficient in value.terms:
            parts = [self._atom(atom) for atom in monomial]
            product = expr(1)
            for part in parts:
                product = product * part
            if not is_affine(product) and product.syms().isdisjoint(self._leaves):
                product = self._number(product)
            total = total + product * coefficient
        return total

    def _atom(self, atom: Atom) -> Expr:
        value = term((atom,))
        if isinstance(atom, FloorDiv | Mod) and not atom.den.is_constant:
            return self._number(value) if value.syms().isdisjoint(self._leaves) else value
        parts = children(atom)
        return rebuilt(atom, tuple([self._affine(part) for part in parts])) if parts else value

    def _number(self, value: Expr) -> Expr:
        self._exact = False
        return expr(self._products.setdefault(value, Sym(f"⟨{value}⟩")))
