"""Formulas over index expressions: what a set or a relation is built from.

    formula = Ge expr | Eq expr | And formula* | Or formula*      expr ≥ 0, expr = 0

There is no negation node: `negate` pushes it to the leaves, where it is exact for integers. Formulas are interned, as
expressions are, so that results about them are memoised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import TypeAlias, assert_never

from texpr.affine.expr import Expr, IntoExpr, Sym, expr
from texpr.affine.interned import interned


@interned
class Ge:
    """`expr` ≥ 0."""

    expr: Expr


@interned
class Eq:
    """`expr` = 0."""

    expr: Expr


@interned
class And:
    """All of `parts`."""

    parts: tuple[Formula, ...]


@interned
class Or:
    """At least one of `parts`."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = Ge | Eq | And | Or

TRUE = And(())
"""Always holds."""

FALSE = Or(())
"""Never holds."""


def compare(op: str, left: IntoExpr, right: IntoExpr) -> Formula:
    """`left op right` for `op` one of == != < <= > >= (or eq ne lt le gt ge)."""
    difference = expr(left) - right
    match op:
        case "==" | "eq":
            return Eq(difference)
        case "!=" | "ne":
            return Or((Ge(difference - 1), Ge(-difference - 1)))
        case "<" | "lt":
            return Ge(-difference - 1)
        case "<=" | "le":
            return Ge(-difference)
        case ">" | "gt":
            return Ge(difference - 1)
        case ">=" | "ge":
            return Ge(difference)
        case _:
            raise ValueError(f"not a comparison: {op}")


def conj(parts: Iterable[Formula]) -> Formula:
    """All of `parts`, nested conjunctions flattened."""
    flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disj(parts: Iterable[Formula]) -> Formula:
    """Any of `parts`, nested disjunctions flattened; TRUE if one of them is."""
    flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, Or) else (part,))]
    if TRUE in flat:
        return TRUE
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def between(lo: IntoExpr, value: IntoExpr, hi: IntoExpr) -> Formula:
    """lo ≤ value < hi."""
    return And((Ge(expr(value) - lo), Ge(expr(hi) - value - 1)))


def among(value: Expr, those: Sequence[Expr]) -> Formula:
    """value is one of those; numbers that follow each other are one range."""
    numbers = {each.constant for each in those if each.is_constant}
    begun, ended = (sorted(at for at in numbers if at + by not in numbers) for by in (-1, 1))
    runs = (between(low, value, high + 1) for low, high in zip(begun, ended, strict=True))
    return disj((*runs, *(Eq(value - each) for each in those if not each.is_constant)))


def equal(left: Iterable[IntoExpr], right: Iterable[IntoExpr]) -> Formula:
    """Equality of two tuples, entry by entry."""
    return conj(Eq(expr(a) - b) for a, b in zip(left, right, strict=True))


def differ(left: Iterable[IntoExpr], right: Iterable[IntoExpr]) -> Formula:
    """Inequality of two tuples: some entries differ."""
    return negate(equal(left, right))


@lru_cache(maxsize=1 << 14)
def negate(formula: Formula) -> Formula:
    """The formula that holds where `formula` does not."""
    match formula:
        case Ge(e):
            return Ge(-e - 1)
        case Eq(e):
            return Or((Ge(e - 1), Ge(-e - 1)))
        case And(parts):
            return disj(map(negate, parts))
        case Or(parts):
            return conj(map(negate, parts))
        case _:
            assert_never(formula)


def rename(formula: Formula, values: Mapping[Sym, IntoExpr]) -> Formula:
    """The formula with symbols replaced."""
    match formula:
        case Ge(e):
            new = e.substitute(values)
            return formula if new is e else Ge(new)
        case Eq(e):
            new = e.substitute(values)
            return formula if new is e else Eq(new)
        case And() | Or():
            named = names(formula)
            return formula if values.keys().isdisjoint(named) else _renamed(formula, tuple(map(values.get, named)))
        case _:
            assert_never(formula)


@lru_cache(maxsize=1 << 14)
def _renamed(formula: And | Or, given: tuple[IntoExpr | None, ...]) -> Formula:
    """`formula` with its symbols `names` replaced by those in `given`; None leaves a symbol as it is."""
    values = {sym: new for sym, new in zip(names(formula), given, strict=True) if new is not None}
    parts = tuple([rename(part, values) for part in formula.parts])
    return And(parts) if isinstance(formula, And) else Or(parts)


def mapped(formula: Formula, change: Callable[[Expr], Expr]) -> Formula:
    """The formula with `change` applied to each compared expression."""
    match formula:
        case Ge(e):
            new = change(e)
            return formula if new is e else Ge(new)
        case Eq(e):
            new = change(e)
            return formula if new is e else Eq(new)
        case And(parts) | Or(parts):
            others = tuple([mapped(p, change) for p in parts])
            if all(map(is_, others, parts)):
                return formula
            return And(others) if isinstance(formula, And) else Or(others)
        case _:
            assert_never(formula)


def leaves(formula: Formula) -> Iterator[Expr]:
    """The expression of every comparison."""
    match formula:
        case Ge(e) | Eq(e):
            yield e
        case And(parts) | Or(parts):
            for part in parts:
                yield from leaves(part)
        case _:
            assert_never(formula)


@lru_cache(maxsize=1 << 14)
def syms(formula: Formula) -> frozenset[Sym]:
    """Every symbol that occurs."""
    match formula:
        case Ge(e) | Eq(e):
            return e.syms()
        case And() | Or():
            return frozenset(names(formula))


@lru_cache(maxsize=1 << 14)
def names(formula: Formula) -> tuple[Sym, ...]:
    """Every symbol that occurs, in textual order."""
    match formula:
        case Ge(e) | Eq(e):
            return e.names()
        case And(parts) | Or(parts):
            return tuple(dict.fromkeys([sym for part in parts for sym in names(part)]))


def holds(formula: Formula, values: Mapping[Sym, int]) -> bool:
    """Whether the formula holds at a point."""
    match formula:
        case Ge(e):
            return e.evaluate(values) >= 0
        case Eq(e):
            return e.evaluate(values) == 0
        case And(parts):
            return all(holds(p, values) for p in parts)
        case Or(parts):
            return any(holds(p, values) for p in parts)
        case _:
            assert_never(formula)
