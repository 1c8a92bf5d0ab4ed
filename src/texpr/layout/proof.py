"""Side conditions of the operations: by arithmetic for constants, otherwise by proof."""

from __future__ import annotations

from texpr.affine.expr import ZERO, Expr, expr
from texpr.affine.facts import Fact, Known
from texpr.affine.simplify import Simplifier
from texpr.layout.inttuple import Int, minus, tidy, times
from texpr.layout.layout import Layout

NOTHING = Known({})
"""No knowledge of symbols, except that sizes are positive."""


class Prover:
    """Proofs from what is known, and from the positive sizes of `layouts`. `False` means not proved."""

    __slots__ = ("_known", "_layouts", "_made")

    def __init__(self, known: Known, *layouts: Layout):
        self._known, self._layouts = known, layouts
        self._made: Simplifier | None = None

    @property
    def _simple(self) -> Simplifier:
        if self._made is None:
            sizes = dict.fromkeys(m.size for each in self._layouts for m in each.flat if isinstance(m.size, Expr))
            self._made = Simplifier(self._known.also(Fact(1, size, None) for size in sizes))
        return self._made

    def at_most(self, a: Int, b: Int) -> bool:
        """Whether a ≤ b."""
        if isinstance(a, int) and isinstance(b, int):
            return a <= b
        gap = expr(b) - a
        return self._simple.known.nonnegative(gap) or self._simple.known.nonnegative(self._simple(gap))

    def divides(self, d: Int, value: Int) -> bool:
        """Whether d > 0 divides `value`."""
        if isinstance(d, int) and isinstance(value, int):
            return d != 0 and value % d == 0
        if isinstance(d, int) and d > 0 and self._simple.known.multiple(expr(value), d):
            return True
        return d != 0 and self._simple(expr(value) % d) is ZERO

    def equal(self, a: Int, b: Int) -> bool:
        """Whether a = b."""
        return a == b or (not (isinstance(a, int) and isinstance(b, int)) and self._simple(expr(a) - b) is ZERO)

    def quotient(self, value: Int, d: Int) -> Int:
        """value / d, where d divides `value`."""
        if isinstance(d, int) and isinstance(value, int):
            return value // d
        return tidy(self._simple(expr(value) // d))

    def positive(self, value: Int) -> bool:
        """Whether value ≥ 1."""
        return self.at_most(1, value)

    def last(self, size: Int, step: Int) -> Int:
        """The maximum of 0, step, …, step · (size − 1)."""
        return times(step, minus(size, 1))
