"""What comparisons of one symbol with numbers say of it, and what is simpler for that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Known
from texpr.affine.ranges import EVERYTHING, Interval, as_range, interval
from texpr.affine.simplify import Simplifier
from texpr.presburger.formula import Formula, Ge
from texpr.presburger.solve.relaxed import flat


def ranges_of(facts: Iterable[Formula], same: Mapping[Sym, Expr] | None = None) -> dict[Sym, Interval]:
    """The range of each symbol that a comparison bounds by itself. `same`: symbols that are known to equal expressions."""
    found: dict[Sym, Interval] = {}
    for fact in facts:
        if isinstance(fact, Ge) and len(fact.expr.terms) == 1 and fact.expr.is_linear:
            value = fact.expr.substitute(same) if same else fact.expr
            if len(value.terms) == 1:
                (((sym, *_), by),) = value.terms
                if isinstance(sym, Sym):
                    low, high = found.get(sym, EVERYTHING)
                    end = -(value.constant // by) if by > 0 else value.constant // -by
                    found[sym] = (max(low, end), high) if by > 0 else (low, min(high, end))
    return found


def is_below(value: Expr, size: Expr, ranges: Mapping[Sym, Interval]) -> bool:
    """Whether the ranges of its symbols put `value` into 0..size."""
    return interval(value, ranges)[0] >= 0 and interval(size - value, ranges)[0] > 0


def within(facts: Iterable[Formula]) -> Simplifier:
    """A simplifier for expressions at points with `facts`, by the ranges of their symbols; it knows nothing where one of these
    is empty."""
    return simplifier(frozenset(ranges_of(flat(facts)).items())) or _KNOWS_NOTHING


@lru_cache(maxsize=1 << 8)
def simplifier(ranges: frozenset[tuple[Sym, Interval]]) -> Simplifier | None:
    """One that knows these ranges; None where one of them is empty."""
    known = {sym: as_range(ends) for sym, ends in ranges if ends != EVERYTHING}
    return None if any(low > high for _, (low, high) in ranges) else Simplifier(Known(known))


_KNOWS_NOTHING = Simplifier(Known({}))
