"""Whether a comparison follows from others inside a nest, decided by isl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from texpr.affine.expr import Atom, Expr, FloorDiv, Mod, Sym, children, expr, rebuilt, term
from texpr.domain.context import Context
from texpr.presburger.formula import Ge, conj
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import is_affine


class Hypotheses:
    """What holds inside a nest, as hypotheses for further comparisons.

    A product of symbols, or a division by one, is relaxed to an unknown in its range: a proof for any value holds for the
    actual one. The converse fails, so then "no" is no answer.
    """

    __slots__ = ("_apart", "_exact", "_inside", "_known", "_made", "_numbers")

    def __init__(self, context: Context, margins: Sequence[Expr], apart: bool):
        """`margins`: all hypotheses that are ever used. `apart`: they are known to be satisfiable together, so those that
        share no symbol with a claim, even indirectly, cannot help."""
        self._known = context.known
        self._made: dict[Expr, Expr] = {}
        self._numbers: dict[Expr, Sym] = {}
        self._exact = True
        self._inside: list[Expr] = []
        self._inside.extend([self._affine(each) for each in context.known.nonnegatives()])

        self._apart = apart
        said = [self._affine(each) for each in margins]
        if not apart and self._exact:
            self._apart = self._decide(said, expr(-1)) is False

    def imply(self, margins: Sequence[Expr], claim: Expr) -> tuple[int, ...] | Literal[False] | None:
        """The indices of `margins` whose ≥ 0 implies `claim` ≥ 0; False where all of them together do not, None where
        undecided."""
        said, claim = [self._affine(each) for each in margins], self._affine(claim)
        answer = self._decide(said, claim)
        if answer is not True:
            return answer
        return self._fewest(said, claim)

    def _fewest(self, margins: Sequence[Expr], claim: Expr) -> tuple[int, ...]:
        """An irredundant subset of `margins` that implies the claim; most often a single one, which shares a symbol with the
        claim."""
        if self._decide([], claim) is True:
            return ()
        for at, each in enumerate(margins):
            if not each.syms().isdisjoint(claim.syms()) and self._decide([each], claim) is True:
                return (at,)
        needed = list(range(len(margins)))
        for at in reversed(needed.copy()):
            fewer = [each for each in needed if each != at]
            if self._decide([margins[each] for each in fewer], claim) is True:
                needed = fewer
        return tuple(needed)

    def _decide(self, margins: Sequence[Expr], claim: Expr) -> bool | None:
        said = [*self._inside, *margins]
        try:
            if _contradict(_connected(said, claim), claim):
                return True
            if self._exact:
                return not self._apart and _contradict(said, claim)
        except Undecided:
            pass
        return None

    def _affine(self, value: Expr) -> Expr:
        found = self._made.get(value)
        if found is None:
            found = self._made[value] = value if is_affine(value) else self._without_products(value)
        return found

    def _without_products(self, value: Expr) -> Expr:
        total = expr(value.constant)
        for monomial, coefficient in value.terms:
            product = expr(1)
            for atom in monomial:
                product = product * self._atom(atom)
            total = total + (product if is_affine(product) else self._number(term(monomial))) * coefficient
        return total

    def _atom(self, atom: Atom) -> Expr:
        if isinstance(atom, Sym):
            return expr(atom)
        if isinstance(atom, FloorDiv | Mod) and not atom.den.is_constant:
            return self._number(term((atom,)))
        return rebuilt(atom, tuple([self._affine(part) for part in children(atom)]))

    def _number(self, value: Expr) -> Expr:
        found = self._numbers.get(value)
        if found is None:
            self._exact = False
            found = self._numbers[value] = Sym(f"⟨{value}⟩")
            lo, hi = self._known.bounds(value)
            self._inside += [] if lo is None else [expr(found) - lo]
            self._inside += [] if hi is None else [hi - expr(found)]
        return expr(found)


def _contradict(values: Sequence[Expr], claim: Expr) -> bool:
    """Whether no point has all of `values` ≥ 0 and `claim` < 0."""
    return Set.of([], conj([*map(Ge, values), Ge(-claim - 1)])).is_empty()


def _connected(values: Sequence[Expr], claim: Expr) -> list[Expr]:
    """Those of `values` that share symbols with `claim`, directly or through others."""
    reached = set(claim.syms())
    left = list(values)
    found: list[Expr] = []
    while True:
        near = [each for each in left if not reached.isdisjoint(each.syms())]
        if not near:
            return found
        found += near
        left = [each for each in left if reached.isdisjoint(each.syms())]
        for each in near:
            reached |= each.syms()
