"""Systems of integer comparisons, decided by elimination of symbols one by one.

    a·x + L ≥ 0,  U − b·x ≥ 0   (a, b > 0)   →   b·L + a·U ≥ 0                        real shadow: a rational x exists
                                             →   b·L + a·U ≥ (a − 1)·(b − 1)          dark shadow: an integer x exists
    a = 1 or b = 1                           →   both are equal: elimination is exact

A contradiction of the first (real) shadow refutes the system; a solution of the second (dark) shadow gives one of the system.
Source: W. Pugh, The Omega test, Supercomputing 1991, sections 2.2 and 2.3.

Each comparison, and so each contradiction, has a bit mask of the alternatives that it depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from math import gcd
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.presburger.solve.clauses import NEVER, Clause, Key, Row, Terms

MOST_ROWS = 120
"""The number of comparisons that a system may grow to; beyond that isl is faster."""

Choice: TypeAlias = tuple[tuple[Clause, ...], int]
"""Alternatives, and what failed alternatives of the same choice depended on."""


Comparison: TypeAlias = tuple[int, Terms, int]
"""constant + terms ≥ 0, and the mask of the alternatives that it depends on."""


class Never(Exception):
    """A contradiction, which depends on the alternatives in the mask `why`."""

    def __init__(self, why: int):
        self.why = why


class TooLong(Exception):
    """The elimination exceeds its limit: isl has to decide."""


class Store:
    """Comparisons over unsolved symbols: bounds of single symbols, and rows of several."""

    __slots__ = ("kept", "known", "least", "loose", "most", "rows", "where")

    def __init__(self) -> None:
        self.known: dict[Sym, tuple[int, Terms, int]] = {}
        self.least: dict[Sym, tuple[int, int]] = {}
        self.most: dict[Sym, tuple[int, int]] = {}
        self.rows: dict[Key, Comparison] = {}
        self.where: dict[Sym, tuple[dict[Key, None], dict[Key, None]]] | None = None
        self.loose: list[Sym] = []
        self.kept: frozenset[Sym] = frozenset()

    def copy(self) -> Store:
        made = Store()
        made.known, made.rows = self.known.copy(), self.rows.copy()
        made.least, made.most = self.least.copy(), self.most.copy()
        return made

    def meant(self, sym: Sym) -> Iterable[Sym]:
        """The definition of `sym`, if it is solved."""
        found = self.known.get(sym)
        return (sym,) if found is None else found[1]

    def take(self, more: Sequence[Clause], whys: Sequence[int]) -> list[Choice]:
        """Adds conjunctions, each with its mask, equations first, and returns their choices. Raises Never."""
        if NEVER in more:
            raise Never(whys[more.index(NEVER)])
        for each, why in zip(more, whys, strict=True):
            for row in each.equal:
                self.equate(*self.reduced(row.constant, row.terms, why))
        solved = self.known.keys()
        for each, why in zip(more, whys, strict=True):
            for row in each.least:
                if solved.isdisjoint(row.terms):
                    self.bound(row.constant, row.terms, why, row)
                else:
                    self.bound(*self.reduced(row.constant, row.terms, why))
        return [(choice, why) for each, why in zip(more, whys, strict=True) for choice in each.choices]

    def reduced(self, constant: int, terms: Terms, why: int) -> Comparison:
        """The same with solved symbols substituted."""
        known = self.known
        if known.keys().isdisjoint(terms):
            return constant, terms, why
        made: Terms = {}
        for sym, coefficient in terms.items():
            meaning = known.get(sym)
            if meaning is None:
                made[sym] = made.get(sym, 0) + coefficient
            else:
                constant += coefficient * meaning[0]
                why |= meaning[2]
                for other, factor in meaning[1].items():
                    made[other] = made.get(other, 0) + coefficient * factor
        if 0 in made.values():
            made = {sym: c for sym, c in made.items() if c}
        return constant, made, why

    def equate(self, constant: int, terms: Terms, why: int) -> None:
        """Solves constant + terms = 0 for a symbol; the coefficients are reduced as in Euclid's algorithm until one is 1."""
        while terms:
            common = gcd(*terms.values())
            if constant % common:
                raise Never(why)
            if common > 1:
                constant, terms = constant // common, {s: c // common for s, c in terms.items()}
            sym = min(terms, key=lambda s: (abs(terms[s]), s in self.kept))
            least = terms[sym]
            if sym in self.kept:
                raise TooLong
            if abs(least) == 1:
                self.solve(sym, -least * constant, {s: -least * c for s, c in terms.items() if s is not sym}, why)
                return
            # least · sym + Σ c · s + constant = least · other + Σ (c mod least) · s + constant mod least
            other = Sym(f"{sym}′")
            rest = {s: c for s, c in terms.items() if s is not sym}
            meaning = {other: 1, **{s: -q for s, c in rest.items() if (q := c // least)}}
            self.solve(sym, -(constant // least), meaning, why)
            left = {other: least, **{s: r for s, c in rest.items() if (r := c % least)}}
            constant, terms, why = self.reduced(constant % least, left, why)
        if constant:
            raise Never(why)

    def solve(self, sym: Sym, constant: int, terms: Terms, why: int) -> None:
        """Records sym = constant + terms and substitutes it. Raises Never."""
        self.known[sym] = constant, terms, why
        for name, (at, meaning, by) in self.known.items():
            if sym in meaning:
                self.known[name] = self.reduced(at, meaning, by)
        named = [(key, row) for key, row in self.rows.items() if sym in row[1]]
        for key, _ in named:
            self.drop(key)
        for _, (at, row, by) in named:
            self.bound(*self.reduced(at, row, by))
        for bounds, sign in ((self.least, 1), (self.most, -1)):
            found = bounds.pop(sym, None)
            if found is not None:
                self.bound(*self.reduced(-sign * found[0], {sym: sign}, found[1]))

    def bound(self, constant: int, terms: Terms, why: int, made: Row | None = None) -> None:
        """Adds constant + terms ≥ 0, which `made` holds as a row, over unsolved symbols. Raises Never."""
        if len(terms) < 2:
            self.single(constant, terms, why)
            return
        if made is None and (common := gcd(*terms.values())) > 1:
            constant, terms = constant // common, {s: c // common for s, c in terms.items()}
        key = made.key if made else frozenset(terms.items())
        known = self.rows.get(key)
        if known is not None and known[0] <= constant:
            return
        opposite = made.opposite if made else frozenset([(s, -c) for s, c in terms.items()])
        against = self.rows.get(opposite)
        if against is None or constant + against[0] > 0:
            self.rows[key] = constant, terms, why
            if known is None and self.where is not None:
                self.note(key, terms)
            return
        if constant + against[0] < 0:
            raise Never(why | against[2])
        self.drop(opposite)
        if known is not None:
            self.drop(key)
        self.equate(constant, terms, why | against[2])

    def single(self, constant: int, terms: Terms, why: int) -> None:
        """The same for at most one symbol."""
        for sym, c in terms.items():
            mine, theirs = (self.least, self.most) if c > 0 else (self.most, self.least)
            value = -(constant // c) if c > 0 else constant // -c
            known, against = mine.get(sym), theirs.get(sym)
            if known is not None and (known[0] >= value if c > 0 else known[0] <= value):
                return
            mine[sym] = value, why
            if against is not None and against[0] == value:
                del mine[sym], theirs[sym]
                self.equate(-value, {sym: 1}, why | against[1])
            elif against is not None and (against[0] < value) == (c > 0):
                raise Never(why | against[1])
            return
        if constant < 0:
            raise Never(why)

    def settled(self, choices: Sequence[Choice], failed: Mapping[Clause, int]) -> Sequence[Choice]:
        """`choices` without alternatives that are refuted, the masks of which are added to `failed`; the only alternative
        left of a choice is asserted. Raises Never."""
        while choices:
            left: list[Choice] = []
            taken = False
            for parts, why in choices:
                fitting: list[Clause] = []
                for part in parts:
                    against = failed.get(part)
                    if against is None:
                        against = self.against(part)
                    if against is None:
                        fitting.append(part)
                    else:
                        why |= against
                if not fitting:
                    raise Never(why)
                if len(fitting) == 1:
                    left += self.take(fitting, (why,))
                    taken = True
                else:
                    left.append((tuple(fitting), why))
            choices = left
            if not taken:
                break
        return choices

    def against(self, part: Clause) -> int | None:
        """The mask by which an alternative contradicts a bound or a row; None where it does not."""
        solved = self.known.keys()
        for row in part.least:
            if solved.isdisjoint(row.terms):
                constant, terms, why, opposite = row.constant, row.terms, 0, row.opposite
            else:
                constant, terms, why = self.reduced(row.constant, row.terms, 0)
                opposite = None
            found = self.below(constant, terms, opposite)
            if found is not None:
                return why | found
        for row in part.equal:
            constant, terms, why = self.reduced(row.constant, row.terms, 0)
            found = self.below(constant, terms)
            if found is None:
                found = self.below(-constant, {s: -c for s, c in terms.items()})
            if found is None and terms and constant % gcd(*terms.values()):
                found = 0
            if found is not None:
                return why | found
        for choice in part.choices:
            total = 0
            for each in choice:
                found = self.against(each)
                if found is None:
                    break
                total |= found
            else:
                return total
        return None

    def below(self, constant: int, terms: Terms, opposite: Key | None = None) -> int | None:
        """The mask by which constant + terms is always negative; None where it is not. `opposite`: key of the negated row."""
        why, top = 0, constant
        for sym, c in terms.items():
            found = (self.most if c > 0 else self.least).get(sym)
            if found is None:
                break
            top += c * found[0]
            why |= found[1]
        else:
            if top < 0:
                return why
        if len(terms) > 1 and self.rows:
            common = 1 if opposite else gcd(*terms.values())
            against = self.rows.get(opposite or frozenset([(s, -c // common) for s, c in terms.items()]))
            if against is not None and against[0] + constant // common < 0:
                return against[2]
        return None

    def narrowed(self) -> bool:
        """Bound propagation with rounding, a few rounds; whether it solved a symbol. Raises Never."""
        before = len(self.known)
        for _ in range(3):
            for key, row in list(self.rows.items()):
                if self.rows.get(key) is row:
                    self.narrow(*row)
            if len(self.known) > before:
                return True
        return False

    def narrow(self, constant: int, terms: Terms, why: int) -> None:
        """Tightens the bound of each symbol of a comparison by the bounds of the others."""
        bounds = [(self.most if c > 0 else self.least).get(s) for s, c in terms.items()]
        missing = bounds.count(None)
        if missing > 1:
            return
        pairs = list(zip(terms.items(), bounds, strict=True))
        for _, bound in pairs:
            why |= bound[1] if bound is not None else 0
        total = constant + sum([c * bound[0] for (_, c), bound in pairs if bound is not None])
        for (sym, c), bound in pairs:
            if (bound is None or not missing) and sym not in self.known:
                self.single(total - (c * bound[0] if bound is not None else 0), {sym: c}, why)

    def shadow(self, *, dark: bool) -> bool | None:
        """Whether elimination of every symbol is exact; None where it exceeds its limit. Raises Never."""
        if not self.rows:
            return True
        made = self.copy()
        made.known = {}
        try:
            return made.eliminate(dark=dark)
        except TooLong:
            return None

    def project(self, kept: frozenset[Sym]) -> None:
        """Eliminates the symbols not in `kept`, as long as that is exact and adds no comparisons. Raises Never, TooLong."""
        self.kept = kept
        self.index()
        while (found := self.next()) is not None and found[0] <= (False, 0):
            self.take_out(found[1], dark=False)
            self.let_go()
        self.kept, self.where = frozenset(), None

    def eliminate(self, *, dark: bool) -> bool:
        """Eliminates every symbol; whether all steps were exact. Raises Never, TooLong."""
        exact = True
        self.index()
        while (found := self.next()) is not None:
            exact &= not found[0][0]
            self.take_out(found[1], dark=dark)
            self.let_go()
        return exact

    def index(self) -> None:
        """Builds the index from symbols to the rows that bound them, without kept symbols; maintained from here on."""
        self.where = {}
        for key, (_, terms, _) in self.rows.items():
            self.note(key, terms)
        self.loose = list(self.where)
        self.let_go()

    def note(self, key: Key, terms: Terms) -> None:
        assert self.where is not None, "it is indexed"
        for sym, coefficient in terms.items():
            if sym not in self.kept:
                sides = self.where.get(sym)
                if sides is None:
                    sides = self.where[sym] = {}, {}
                sides[coefficient < 0][key] = None

    def drop(self, key: Key) -> None:
        """Removes a row."""
        row = self.rows.pop(key)
        if self.where is None:
            return
        for sym, coefficient in row[1].items():
            sides = self.where.get(sym)
            if sides is not None:
                del sides[coefficient < 0][key]
                if not sides[0] and not sides[1]:
                    del self.where[sym]
                elif not sides[coefficient < 0]:
                    self.loose.append(sym)

    def let_go(self) -> None:
        """Drops symbols that are bounded on one side only: some value fulfils all of their comparisons."""
        assert self.where is not None, "it is indexed"
        while self.loose:
            sym = self.loose.pop()
            lower, upper = self.where.get(sym, ({}, {}))
            if not (lower or sym in self.least) or not (upper or sym in self.most):
                for key in (*lower, *upper):
                    self.drop(key)

    def next(self) -> tuple[tuple[bool, int], Sym] | None:
        """The symbol to eliminate next, as (inexact, number of added comparisons, symbol); None if none is left."""
        assert self.where is not None, "it is indexed"
        found: tuple[tuple[bool, int], Sym] | None = None
        for sym, (lower, upper) in self.where.items():
            below, above = len(lower) + (sym in self.least), len(upper) + (sym in self.most)
            cost = not self.is_exact(sym, lower, upper), below * above - below - above
            if found is None or cost < found[0]:
                found = cost, sym
            if not cost[0] and cost[1] < 0:
                break
        return found

    def is_exact(self, sym: Sym, lower: Iterable[Key], upper: Iterable[Key]) -> bool:
        """Whether all coefficients of one side are 1: elimination is exact."""
        rows = self.rows
        for key in lower:
            if rows[key][1][sym] != 1:
                break
        else:
            return True
        return all([rows[key][1][sym] == -1 for key in upper])

    def take_out(self, sym: Sym, *, dark: bool) -> None:
        """Eliminates a symbol: combines each lower with each upper bound."""
        assert self.where is not None, "it is indexed"
        lower, upper = self.where[sym]
        lows, highs = [self.rows[key] for key in lower], [self.rows[key] for key in upper]
        for key in (*lower, *upper):
            self.drop(key)
        bounds = (self.least.pop(sym, None), highs), (self.most.pop(sym, None), lows)
        single = [_at(sym, bound, row) for bound, rows in bounds if bound is not None for row in rows]
        known = self.known
        for made in chain(single, (_between(sym, low, high, dark) for low, high in product(lows, highs))):
            self.bound(*(self.reduced(*made) if known else made))
            if len(self.rows) > MOST_ROWS:
                raise TooLong


def _at(sym: Sym, bound: tuple[int, int], row: Comparison) -> Comparison:
    """A comparison with a symbol replaced by its bound."""
    constant, terms, why = row
    return constant + terms[sym] * bound[0], {s: c for s, c in terms.items() if s is not sym}, why | bound[1]


def _between(sym: Sym, low: Comparison, high: Comparison, dark: bool) -> Comparison:
    """The combination of a lower and an upper bound: their shadow, or the dark shadow if `dark`."""
    a, b = low[1][sym], -high[1][sym]
    terms = low[1].copy() if b == 1 else {s: b * c for s, c in low[1].items()}
    del terms[sym]
    for s, c in high[1].items():
        if s in terms:
            total = terms[s] + a * c
            if total:
                terms[s] = total
            else:
                del terms[s]
        elif s is not sym:
            terms[s] = a * c
    return b * low[0] + a * high[0] - ((a - 1) * (b - 1) if dark else 0), terms, low[2] | high[2]
