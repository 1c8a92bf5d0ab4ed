"""Formulas → facts for cheap proofs: expressions that are never negative, products of sizes kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Fact, Known
from texpr.presburger.formula import And, Eq, Formula, Ge, Or


def facts_of(formulas: Iterable[Formula]) -> Iterator[Expr]:
    """Expressions that are ≥ 0 where all of `formulas` hold; alternatives say nothing."""
    for formula in formulas:
        match formula:
            case Ge(value):
                yield value
            case Eq(value):
                yield value
                yield -value
            case And(parts):
                yield from facts_of(parts)
            case Or():
                pass


def known(facts: Iterable[Expr]) -> Known:
    """What `facts` let one prove. Symbols that a fact bounds by a constant get that as their range."""
    least: dict[Sym, int] = {}
    most: dict[Sym, int] = {}
    rest: list[Fact] = []
    for fact in dict.fromkeys(facts):
        below, above = (fact - fact.constant).as_sym, (fact.constant - fact).as_sym
        if below is not None:
            least[below] = max(least.get(below, -fact.constant), -fact.constant)
        elif above is not None:
            most[above] = min(most.get(above, fact.constant), fact.constant)
        else:
            rest.append(Fact(0, fact, None))
    return Known({s: (least.get(s), most.get(s)) for s in (*least, *most)}, rest)
