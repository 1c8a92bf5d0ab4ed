"""The simplifier: the theorems of `texpr.affine.rules`, innermost first, until none applies.

Every rule removes an atom or a term, or moves a floor into a remainder, so rewriting terminates; the bound on rounds is a
safety net, and stopping early is sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from texpr.affine.expr import ZERO, Atom, Expr, FloorDiv, Mod, Sym, children, expr, rebuilt, term, without
from texpr.affine.facts import Fact, Known
from texpr.affine.ranges import Range
from texpr.affine.rules import apply_to_atom, apply_to_sum, symbol_is_fixed

_ROUNDS = 64


def simplify(value: Expr, ranges: Mapping[Sym, Range], facts: Iterable[Fact] = ()) -> Expr:
    """An equal, simpler expression, given inclusive ranges of symbols and facts such as `Fact(0, j, N)`.

    Equal means: at each point within ranges and facts at which `value` divides by no zero. Where many expressions are
    simplified under the same knowledge, make a `Simplifier` once.
    """
    return Simplifier(Known(ranges, facts))(value)


class Simplifier:
    """Simplifies under fixed facts; memoised."""

    __slots__ = ("_done", "known")

    def __init__(self, known: Known):
        self.known = known
        self._done: dict[Expr, Expr] = {}

    def __call__(self, value: Expr) -> Expr:
        """`value`, simplified."""
        if not value.terms:
            return value
        found = self._done.get(value)
        if found is not None:
            return found
        current = value
        for _ in range(_ROUNDS):
            changed = self._round(current)
            if changed is current:
                break
            current = changed
        self._done[value] = self._done[current] = current
        return current

    def _round(self, value: Expr) -> Expr:
        """One round: each atom of the sum rewritten once; if none changes, the sum as a whole."""
        changes: dict[Atom, Expr] = {}
        linear = True
        for monomial, _ in value.terms:
            for atom in monomial:
                linear = linear and isinstance(atom, Sym)
                rewritten = self._atom(atom)
                if rewritten is not None:
                    changes[atom] = rewritten
        if changes:
            return _replaced(value, changes)
        changed = None if linear else apply_to_sum(value, self.known)
        return value if changed is None else changed

    def _atom(self, atom: Atom) -> Expr | None:
        """An atom with simplified operands or, if these are simplified already, after one rewriting; `None` where nothing
        changes."""
        if type(atom) is Sym:
            return symbol_is_fixed(atom, self.known)
        parts = children(atom)
        simple = tuple([self(part) for part in parts])
        if simple == parts:
            return apply_to_atom(atom, self.known)
        if isinstance(atom, FloorDiv | Mod) and simple[1] is ZERO:
            return None  # proved to divide by zero: left as it is, undefined
        return rebuilt(atom, simple)


def _replaced(value: Expr, changes: Mapping[Atom, Expr]) -> Expr:
    total = expr(value.constant)
    for monomial, coefficient in value.terms:
        changed = [atom for atom in monomial if atom in changes]
        product = term(without(monomial, tuple(changed)) or (), coefficient)
        for atom in changed:
            product = product * changes[atom]
        total = total + product
    return total
