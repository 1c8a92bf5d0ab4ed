"""Of what symbols of a kernel are made: a variable of those in its value, a loop's index of itself and those in its start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym
from texpr.support.record import Mutable, field

Known: TypeAlias = "frozenset[Sym] | tuple[Expr, ...]"
"""Symbols, or subscripts."""


class Origins(Mutable, eq=False):
    """What is known so far. `changes`: how often something that was known became another thing, so that nothing follows from
    what it was any more."""

    derived: dict[Sym, frozenset[Sym]] = field(default_factory=dict[Sym, frozenset[Sym]])
    changes: int = 0
    known: dict[Known, frozenset[Sym]] = field(default_factory=dict["Known", frozenset[Sym]])

    def note(self, sym: Sym, values: Iterable[Expr], *, itself: bool = False) -> None:
        """A symbol has one of these values. `itself`: and changes by itself, as a loop's index."""
        made = self.of(frozenset(s for value in values for s in value.syms()))
        made = made | {sym} if itself else made
        if self.derived.get(sym) != made:
            self.derived[sym] = made
            self.changes += 1
            self.known.clear()

    def of(self, symbols: frozenset[Sym]) -> frozenset[Sym]:
        """The symbols, and those of which they are made."""
        found = self.known.get(symbols)
        if found is None:
            found = self.known[symbols] = symbols.union(*(self.derived[sym] for sym in symbols if sym in self.derived))
        return found

    def of_place(self, index: tuple[Expr, ...]) -> frozenset[Sym]:
        """The same of the symbols of subscripts."""
        found = self.known.get(index)
        if found is None:
            found = self.known[index] = self.of(frozenset(sym for each in index for sym in each.syms()))
        return found
