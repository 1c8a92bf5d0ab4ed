"""Does a formula hold anywhere? Symbols are eliminated one by one, which answers most of what a compiler asks at once.

    a·x + L ≥ 0,  U − b·x ≥ 0   (a, b > 0)   →   b·L + a·U ≥ 0                        a rational x is between
                                             →   b·L + a·U ≥ (a − 1)·(b − 1)          an integer x is, for certain
    a = 1 or b = 1                           →   both are one, and nothing is lost

Where the first system is contradictory there is no point; where the second is not, there is one. In between this is silent,
and isl is to be asked. Source: W. Pugh, The Omega test, Supercomputing 1991, sections 2.2 and 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import gcd
from typing import Self

from texpr.affine.expr import Expr, Sym
from texpr.presburger.formula import TRUE, And, Eq, Formula, Ge, Or
from texpr.presburger.linear import linear, taken_apart

MOST_ROWS = 120
"""Comparisons that a system may grow to; with more, isl is faster."""

MOST_CASES = 48
"""Choices among alternatives, multiplied out, that are looked at."""

_Terms = dict[Sym, int]
"""Coefficients, none of them 0."""

_Key = frozenset[tuple[Sym, int]]


class _Contradiction(Exception):
    """There is no point."""


class _TooLong(Exception):
    """The question is for isl."""


class System:
    """A formula, every symbol of it free: its equalities solved, alternatives left open."""

    __slots__ = (
        "_bounds", "_choices", "_contradictory", "_defined", "_indexed", "_kept", "_loose", "_rows", "_solved", "_views",
    )  # fmt: skip

    def __init__(self, formula: Formula):
        """Raises NotAffine."""
        self._solved: dict[Sym, tuple[int, _Terms]] = {}
        self._rows: dict[_Key, tuple[int, _Terms]] = {}
        self._bounds: dict[Sym, tuple[dict[_Key, None], dict[_Key, None]]] = {}
        self._indexed, self._loose = False, list[Sym]()
        self._choices: list[Or] = []
        self._defined: set[Sym] = set()
        self._contradictory = False
        self._kept: frozenset[Sym] = frozenset()
        self._views: dict[frozenset[Sym], System] = {}
        self._add(formula)

    def is_empty(self, also: Formula = TRUE) -> bool | None:
        """Whether there is no point at which `also` holds; None where that is not found out. Raises NotAffine."""
        found = self if also is TRUE else self._seen_by(also)._and(also)
        try:
            return found._none([MOST_CASES])
        except _TooLong:
            return None

    def _seen_by(self, also: Formula) -> System:
        """A system of fewer symbols that has a point with given values of those that `also` names wherever this one has."""
        named = {sym for part in (also, *self._choices) for sym in _named(part)}
        kept = frozenset([s for sym in named for s in (self._solved[sym][1] if sym in self._solved else (sym,))])
        if kept not in self._views:
            self._views[kept] = self._projected(kept)
        return self._views[kept]

    def _projected(self, kept: frozenset[Sym]) -> System:
        """What this says of `kept` alone, as far as that loses nothing and takes no more comparisons."""
        made = self._and(TRUE)
        made._defined, made._kept = set(), kept  # an unknown that is taken out may be named again
        try:
            made._index()
            made._let_go()
            while (found := made._next()) is not None and found[0] <= (False, 1):
                made._take_out(found[1], dark=False)
                made._let_go()
        except _Contradiction:
            made._contradictory = True
        except _TooLong:
            return self
        made._kept, made._indexed, made._bounds = frozenset(), False, {}
        return made

    def _and(self, also: Formula) -> Self:
        made = object.__new__(type(self))
        made._solved, made._rows = self._solved.copy(), self._rows.copy()
        made._choices, made._defined = self._choices.copy(), self._defined.copy()
        made._contradictory = self._contradictory
        made._bounds, made._indexed, made._loose = {}, False, []
        made._kept, made._views = frozenset(), {}
        if also is not TRUE:
            made._add(also)
        return made

    def _add(self, formula: Formula) -> None:
        equalities: dict[Expr, None] = {}
        comparisons: dict[Expr, None] = {}
        for leaf in self._leaves(formula):
            (equalities if isinstance(leaf, Eq) else comparisons)[leaf.expr] = None
        try:
            for value in equalities:
                self._equal(*self._reduced(value.constant, _terms(value)))
            for value in comparisons:
                self._compare(*self._reduced(value.constant, _terms(value)))
        except _Contradiction:
            self._contradictory = True

    def _leaves(self, formula: Formula) -> Iterator[Ge | Eq]:
        """The comparisons of `formula` as sums of symbols; what they leave open goes to the choices."""
        match formula:
            case Ge(value):
                simple = taken_apart(value)
                if isinstance(simple, Ge):
                    yield from self._linear(simple)
                else:
                    yield from self._leaves(simple)
            case Eq():
                yield from self._linear(formula)
            case And(parts):
                for part in parts:
                    yield from self._leaves(part)
            case Or():
                self._choices.append(formula)

    def _linear(self, leaf: Ge | Eq) -> Iterator[Ge | Eq]:
        found = linear(leaf.expr)
        yield leaf if found.value is leaf.expr else type(leaf)(found.value)
        if not self._defined.issuperset(found.unknowns):
            self._defined.update(found.unknowns)
            for definition in found.definitions:
                yield from self._leaves(definition)

    def _reduced(self, constant: int, terms: _Terms) -> tuple[int, _Terms]:
        """The same value without symbols that are solved."""
        if self._solved.keys().isdisjoint(terms):
            return constant, terms
        made: _Terms = {}
        for sym, coefficient in terms.items():
            solution = self._solved.get(sym)
            if solution is None:
                made[sym] = made.get(sym, 0) + coefficient
            else:
                constant += coefficient * solution[0]
                for other, factor in solution[1].items():
                    made[other] = made.get(other, 0) + coefficient * factor
        return constant, {sym: c for sym, c in made.items() if c}

    def _equal(self, constant: int, terms: _Terms) -> None:
        """Solves constant + terms = 0 for a symbol; the coefficients shrink as in Euclid's algorithm until one is 1."""
        while terms:
            common = gcd(*terms.values())
            if constant % common:
                raise _Contradiction
            if common > 1:
                constant, terms = constant // common, {s: c // common for s, c in terms.items()}
            sym = min(terms, key=lambda s: (abs(terms[s]), s in self._kept))
            least = terms[sym]
            if sym in self._kept:
                raise _TooLong
            if abs(least) == 1:
                self._solve(sym, -least * constant, {s: -least * c for s, c in terms.items() if s is not sym})
                return
            # least · sym + Σ c · s + constant = least · other + Σ (c mod least) · s + constant mod least
            other = Sym(f"{sym}′")
            rest = {s: c for s, c in terms.items() if s is not sym}
            self._solve(sym, -(constant // least), {other: 1, **{s: -q for s, c in rest.items() if (q := c // least)}})
            terms = {other: least, **{s: r for s, c in rest.items() if (r := c % least)}}
            constant, terms = self._reduced(constant % least, terms)
        if constant:
            raise _Contradiction

    def _solve(self, sym: Sym, constant: int, terms: _Terms) -> None:
        """sym = constant + terms, from here on."""
        self._solved[sym] = constant, terms
        for name, (at, where) in self._solved.items():
            if sym in where:
                self._solved[name] = self._reduced(at, where)
        named = [(key, row) for key, row in self._rows.items() if sym in row[1]]
        for key, _ in named:
            self._drop(key)
        for _, row in named:
            self._compare(*self._reduced(*row))

    def _compare(self, constant: int, terms: _Terms) -> None:
        """Adds constant + terms ≥ 0."""
        if not terms:
            if constant < 0:
                raise _Contradiction
            return
        common = gcd(*terms.values())
        if common > 1:
            constant, terms = constant // common, {s: c // common for s, c in terms.items()}
        key = frozenset(terms.items())
        known = self._rows.get(key)
        if known is not None and known[0] <= constant:
            return
        opposite = frozenset([(s, -c) for s, c in terms.items()])
        against = self._rows.get(opposite)
        if against is None or constant + against[0] > 0:
            self._rows[key] = constant, terms
            if known is None and self._indexed:
                self._note(key, terms)
            return
        if constant + against[0] < 0:
            raise _Contradiction
        self._drop(opposite)
        if known is not None:
            self._drop(key)
        self._equal(*self._reduced(constant, terms))

    def _none(self, cases: list[int]) -> bool:
        """Whether there is no point. `cases`: how many more may be looked at. Raises _TooLong."""
        cases[0] -= 1
        if cases[0] < 0:
            raise _TooLong
        if self._contradictory:
            return True
        if len(self._choices) != 1 or len(self._choices[0].parts) > 2:  # else both parts are looked at as soon
            exact = self._shadow(dark=False)
            if exact is None:
                return True
            if not self._choices:
                if exact or self._shadow(dark=True) is not None:
                    return False
                raise _TooLong
        open_ = False
        for part in self._choices[-1].parts:
            made = self._and(TRUE)
            made._choices.pop()
            made._add(part)
            try:
                if not made._none(cases):
                    return False
            except _TooLong:
                open_ = True
        if open_:
            raise _TooLong
        return True

    def _shadow(self, *, dark: bool) -> bool | None:
        """Whether elimination of every symbol loses nothing; None where it ends in a contradiction. Raises _TooLong."""
        try:
            return None if self._contradictory else self._and(TRUE)._eliminate(dark=dark)
        except _Contradiction:
            return None

    def _eliminate(self, *, dark: bool) -> bool:
        """Takes out every symbol, and says whether nothing was lost or gained by it. Raises _Contradiction, _TooLong."""
        exact = True
        self._index()
        self._let_go()
        while self._rows:
            found = self._next()
            assert found is not None, "comparisons without a symbol are decided at once"
            exact &= not found[0][0]
            self._take_out(found[1], dark=dark)
            self._let_go()
        return exact

    def _index(self) -> None:
        """Notes which comparisons bound which symbols, but for those that are kept; and so from here on."""
        self._indexed = True
        for key, (_, terms) in self._rows.items():
            self._note(key, terms)
        self._loose = list(self._bounds)

    def _take_out(self, sym: Sym, *, dark: bool) -> None:
        """What the comparisons of a symbol say of the others."""
        lower, upper = self._bounds[sym]
        pairs = list(product([self._rows[key] for key in lower], [self._rows[key] for key in upper]))
        for key in (*lower, *upper):
            self._drop(key)
        for low, high in pairs:
            self._between(sym, low, high, dark=dark)
        if len(self._rows) > MOST_ROWS:
            raise _TooLong

    def _let_go(self) -> None:
        """A symbol that is bounded on one side alone has a value that fulfils all of its comparisons."""
        while self._loose:
            lower, upper = self._bounds.get(self._loose.pop(), ({}, {}))
            if not lower or not upper:
                for key in (*lower, *upper):
                    self._drop(key)

    def _next(self) -> tuple[tuple[bool, int], Sym] | None:
        """The symbol to take out next: whether that is inexact, and a measure of what it adds; None if none is left."""
        found: tuple[tuple[bool, int], Sym] | None = None
        for sym, (lower, upper) in self._bounds.items():
            cost = not self._is_exact(sym), (len(lower) - 1) * (len(upper) - 1)
            if found is None or cost < found[0]:
                found = cost, sym
            if cost == (False, 0):
                break
        return found

    def _is_exact(self, sym: Sym) -> bool:
        lower, upper = self._bounds[sym]
        return all(self._rows[key][1][sym] == 1 for key in lower) or all(self._rows[key][1][sym] == -1 for key in upper)

    def _note(self, key: _Key, terms: _Terms) -> None:
        for sym, coefficient in terms.items():
            if sym not in self._kept:
                sides = self._bounds.get(sym)
                if sides is None:
                    sides = self._bounds[sym] = {}, {}
                sides[coefficient < 0][key] = None

    def _drop(self, key: _Key) -> None:
        """Forgets a comparison."""
        for sym, coefficient in self._rows.pop(key)[1].items():
            sides = self._bounds.get(sym)
            if sides is None:
                continue
            del sides[coefficient < 0][key]
            if not sides[0] and not sides[1]:
                del self._bounds[sym]
            elif not sides[coefficient < 0]:
                self._loose.append(sym)

    def _between(self, sym: Sym, low: tuple[int, _Terms], high: tuple[int, _Terms], *, dark: bool) -> None:
        """That some `sym` is between two of its bounds."""
        a, b = low[1][sym], -high[1][sym]
        constant = b * low[0] + a * high[0] - ((a - 1) * (b - 1) if dark else 0)
        terms = {s: b * c for s, c in low[1].items()}
        for s, c in high[1].items():
            terms[s] = terms.get(s, 0) + a * c
        self._compare(*self._reduced(constant, {s: c for s, c in terms.items() if c}))


def _named(formula: Formula) -> Iterator[Sym]:
    """The symbols of a formula, and the unknowns that stand for its floors and extrema."""
    match formula:
        case Ge(value):
            simple = taken_apart(value)
            yield from _mentioned(value) if isinstance(simple, Ge) and simple.expr is value else _named(simple)
        case Eq(value):
            yield from _mentioned(value)
        case And(parts) | Or(parts):
            for part in parts:
                yield from _named(part)


def _mentioned(value: Expr) -> Iterator[Sym]:
    yield from value.syms()
    yield from linear(value).unknowns


def _terms(value: Expr) -> _Terms:
    found: _Terms = {}
    for (atom,), coefficient in value.terms:
        assert isinstance(atom, Sym)
        found[atom] = coefficient
    return found
