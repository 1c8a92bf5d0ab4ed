"""Equations between elements of flat memory, taken apart into rows and columns.

Lemma: from N · p + q = 0 and −N < q < N follows p = 0 and q = 0, for q is a multiple of N. So the rows i, i' and columns j, j'
of i · N + j = i' · N + j' are equal where both columns are known to lie in 0..N, whatever N is. No integer solver sees that, to
which products of unknowns are unknowns of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from texpr.affine.expr import Expr, FloorDiv, Sym, term
from texpr.presburger.formula import Eq, Formula, Ge
from texpr.presburger.omega import refuted
from texpr.presburger.products import parted
from texpr.presburger.relaxed import flat


def in_digits(facts: Sequence[Formula], premises: Formula) -> list[Formula] | None:
    """`facts` with the first equation taken apart that can be; None where there is none. `premises` hold, too."""
    for number, fact in enumerate(facts):
        if not isinstance(fact, Eq):
            continue
        others = (*facts[:number], *facts[number + 1 :], premises)
        for size in _strides(fact.expr):
            row, column = parted(fact.expr, (size,))
            if all(refuted((*others, Ge(sign * column - term((size,))))) for sign in (1, -1)):
                return [*facts[:number], Eq(row), Eq(column), *facts[number + 1 :]]
    return None


def in_rows(facts: Iterable[Formula], premises: Formula) -> list[Formula]:
    """`facts` with all equations taken apart that can be."""
    found = list(flat(facts))
    while (apart := in_digits(found, premises)) is not None:
        found = list(flat(apart))
    return found


def _strides(value: Expr) -> Iterator[Sym | FloorDiv]:
    """The symbols and quotients that every product of `value` has."""
    products = [monomial for monomial, _ in value.terms if len(monomial) > 1]
    if products:
        yield from (a for a in products[0] if isinstance(a, Sym | FloorDiv) and all(a in other for other in products))
