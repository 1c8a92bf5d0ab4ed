"""A quick proof that no integer point satisfies a formula, where there is one; the exact solver is for the rest.

Equations are solved for symbols with coefficient ±1, comparisons are rounded to whole numbers, alternatives are tried one by
one, and what is left is eliminated symbol by symbol (Fourier and Motzkin), up to a limit. What is not affine is taken for an
unknown of its own, and so is a minimum or a maximum where it cannot be taken apart. All of it only adds points, so "there is
none" is a proof; the opposite says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import TypeAlias

from texpr.affine.expr import Expr, FloorDiv, Max, Min, Mod, Sym, Xor, term
from texpr.presburger.formula import And, Eq, Formula, Ge, Or
from texpr.presburger.linear import simple_extrema
from texpr.presburger.relaxed import affine, flat

Row: TypeAlias = tuple[int, tuple[tuple[Sym, int], ...]]
"""A constant, and symbols with their coefficients."""

FEW = 48
"""The most pairs of comparisons that eliminating a symbol may combine."""

MANY = 96
"""The most comparisons that are kept."""


SOME = 5
"""The most sides that a choice has which is no list of goals."""


@dataclass(frozen=True, slots=True)
class _Clause:
    """A conjunction: rows that are 0, rows that are not negative, and choices."""

    equal: tuple[Row, ...]
    least: tuple[Row, ...]
    choices: tuple[tuple[_Clause, ...], ...]


def refuted(facts: Iterable[Formula]) -> bool:
    """Whether it is quickly shown that `facts` never hold together."""
    every = sorted(map(_clause, dict.fromkeys(flat(facts))), key=lambda c: not c.equal)
    some = [
        c for c in every if c.equal or any(len(choice) <= SOME for choice in c.choices)
    ]  # what comes first is often decided by that alone
    return _never(some) or _never(every)


def _never(clauses: Iterable[_Clause]) -> bool:
    store = _Store({}, {})
    choices: list[tuple[_Clause, ...]] = []
    try:
        for clause in clauses:
            store.take(clause, choices)
        return _none(store, choices)
    except _Never:
        return True


class _Never(Exception):
    """What was taken cannot hold."""


@lru_cache(maxsize=1 << 14)
def _leaf(fact: Ge | Eq) -> _Clause:
    value = affine(fact.expr)
    if isinstance(fact, Eq):
        row, equal, least = _linear(value)
        return _Clause((*equal, row), least, ())
    taken = simple_extrema(Ge(value))
    if isinstance(taken, Ge):
        row, equal, least = _linear(taken.expr)
        return _Clause(equal, (*least, row), ())
    return _clause(taken)


def _clause(fact: Formula) -> _Clause:
    match fact:
        case Ge() | Eq():
            return _leaf(fact)
        case And(parts):
            found = [_clause(part) for part in parts]
            return _Clause(
                tuple(row for each in found for row in each.equal),
                tuple(row for each in found for row in each.least),
                tuple(choice for each in found for choice in each.choices),
            )
        case Or(parts):
            return _Clause((), (), (tuple(map(_clause, _shared(parts))),))


def _shared(parts: Iterable[Formula]) -> list[Formula]:
    """Alternatives that begin alike as one, with what they go on with as alternatives: so what they share is taken once."""
    groups: dict[Formula, list[Formula]] = {}
    for part in parts:
        first, rest = (part.parts[0], part.parts[1:]) if isinstance(part, And) and part.parts else (part, ())
        groups.setdefault(first, []).append(And(rest))
    return [first if And(()) in rests else And((first, *_either(rests))) for first, rests in groups.items()]


def _either(rests: list[Formula]) -> tuple[Formula, ...]:
    if len(rests) > 1:
        return (Or(tuple(rests)),)
    (only,) = rests
    return only.parts if isinstance(only, And) else (only,)


@lru_cache(maxsize=1 << 14)
def _linear(value: Expr) -> tuple[Row, tuple[Row, ...], tuple[Row, ...]]:
    """The row of an affine expression over symbols and digits, and rows that define those: equations, and comparisons."""
    constant, sums = value.constant, dict[Sym, int]()
    equal: dict[Row, None] = {}
    least: dict[Row, None] = {}
    for monomial, coefficient in value.terms:
        (atom,) = monomial
        match atom:
            case Sym():
                sym = atom
            case FloorDiv(num, den) | Mod(num, den):
                sym = _digit(num, den.constant, isinstance(atom, Mod), equal, least)
            case Min(args) | Max(args):
                sym, sign = Sym(f"⟨{term(monomial)}⟩"), 1 if isinstance(atom, Min) else -1
                for arg in args:
                    _defined(_linear((arg - sym) * sign), equal, least)
            case Xor():
                raise AssertionError("bits are taken apart before")
        sums[sym] = sums.get(sym, 0) + coefficient
    return (constant, tuple(sums.items())), tuple(equal), tuple(least)


def _digit(num: Expr, den: int, low: bool, equal: dict[Row, None], least: dict[Row, None]) -> Sym:
    """num = den · high + low, where 0 ≤ low < den."""
    high, rest = Sym(f"⌊{num} / {den}⌋"), Sym(f"⟨{num} % {den}⟩")
    (constant, terms), more, bounds = _linear(num)
    equal.update(dict.fromkeys((*more, (constant, (*terms, (high, -den), (rest, -1))))))
    least.update(dict.fromkeys((*bounds, (0, ((rest, 1),)), (den - 1, ((rest, -1),)))))
    return rest if low else high


def _defined(found: tuple[Row, tuple[Row, ...], tuple[Row, ...]], equal: dict[Row, None], least: dict[Row, None]) -> None:
    row, more, bounds = found
    equal.update(dict.fromkeys(more))
    least.update(dict.fromkeys((*bounds, row)))


@dataclass(slots=True)
class _Store:
    """Symbols that are known by others, and comparisons over the rest: sums that are at least a number, by the sum."""

    known: dict[Sym, Row]
    least: dict[tuple[tuple[Sym, int], ...], int]
    spent: list[int] = field(default_factory=lambda: [0])

    def copy(self) -> _Store:
        return _Store(dict(self.known), dict(self.least), self.spent)

    def take(self, clause: _Clause, choices: list[tuple[_Clause, ...]]) -> None:
        """Adds a conjunction. Raises _Never where that cannot be."""
        for row in clause.equal:
            self.equate(*self.reduced(row))
        for row in clause.least:
            self.bound(*self.reduced(row))
        choices.extend(clause.choices)

    def reduced(self, row: Row) -> tuple[int, dict[Sym, int]]:
        constant, terms = row
        known = self.known
        sums: dict[Sym, int] = {}
        for sym, c in terms:
            meaning = known.get(sym)
            if meaning is None:
                sums[sym] = sums.get(sym, 0) + c
            else:
                constant += c * meaning[0]
                for other, d in meaning[1]:
                    sums[other] = sums.get(other, 0) + c * d
        return constant, {sym: c for sym, c in sums.items() if c}

    def equate(self, constant: int, terms: dict[Sym, int]) -> None:
        """Adds an equation over symbols that are not known."""
        if not terms:
            if constant:
                raise _Never
            return
        common = gcd(*terms.values())
        if constant % common:
            raise _Never
        if common > 1:
            constant //= common
            terms = {sym: c // common for sym, c in terms.items()}
        sym = next((s for s, c in terms.items() if c in (1, -1)), None)
        if sym is None:
            self.bound(constant, terms)
            self.bound(-constant, {s: -c for s, c in terms.items()})
            return
        sign = -terms.pop(sym)
        self.known[sym] = constant * sign, tuple([(s, c * sign) for s, c in terms.items()])
        for other, row in self.known.items():
            if any([s is sym for s, _ in row[1]]):
                total, rest = self.reduced(row)
                self.known[other] = total, tuple(rest.items())
        for key in [key for key in self.least if any([s is sym for s, _ in key])]:
            self.bound(*self.reduced((self.least.pop(key), key)))

    def bound(self, constant: int, terms: dict[Sym, int]) -> None:
        """Adds that a sum is not negative."""
        if not terms:
            if constant < 0:
                raise _Never
            return
        common = gcd(*terms.values())
        if common > 1:
            constant //= common
            terms = {sym: c // common for sym, c in terms.items()}
        key = tuple(sorted(terms.items(), key=_number))
        before = self.least.get(key)
        if before is not None and before <= constant:
            return
        self.least[key] = constant
        other = self.least.get(tuple([(s, -c) for s, c in key]))
        if other is not None and other + constant < 0:
            raise _Never

    def allows(self, constant: int, terms: dict[Sym, int]) -> bool:
        """Whether it is not plain that a sum is negative."""
        if not terms:
            return constant >= 0
        common = gcd(*terms.values())
        key = tuple(sorted([(s, -c // common) for s, c in terms.items()], key=_number))
        other = self.least.get(key)
        if other is not None and other + constant // common < 0:
            return False
        most = constant
        for sym, c in terms.items():
            bound = self.least.get(((sym, -1 if c > 0 else 1),))
            if bound is None:
                return True
            most += abs(c) * bound
        return most >= 0

    def empty(self) -> bool:
        """Whether the comparisons alone contradict each other, as eliminating symbols shows."""
        inner = _Store({}, dict(self.least))
        try:
            while inner.least:
                ups: dict[Sym, int] = {}
                downs: dict[Sym, int] = {}
                for key in inner.least:
                    for sym, c in key:
                        side = ups if c > 0 else downs
                        side[sym] = side.get(sym, 0) + 1
                lone = (ups.keys() | downs.keys()) - (ups.keys() & downs.keys())
                if lone:  # bounded on one side: nothing is lost
                    inner.least = {key: n for key, n in inner.least.items() if not any([s in lone for s, _ in key])}
                    continue
                cost, _, sym = min([(n * downs[s] - n - downs[s], n, s) for s, n in ups.items()], key=_cheap)
                if cost > FEW or len(inner.least) > MANY:
                    return False
                _without(inner, sym)
        except _Never:
            return True
        return False

    def fixed(self) -> bool:
        """Whether rounding the bounds of single symbols, a few times, leaves some of them one value, which they are given."""
        for _ in range(3):
            before = len(self.known)
            for key, constant in list(self.least.items()):
                if len(key) > 1 and self.least.get(key) == constant:
                    self.narrow(key, constant)
            for key in [key for key in self.least if len(key) == 1 and key[0][1] == 1]:
                low, high = self.least.get(key), self.least.get(((key[0][0], -1),))
                if low is not None and low == (-high if high is not None else None):
                    self.equate(low, dict(key))
            if len(self.known) > before:
                return True
        return False

    def narrow(self, key: tuple[tuple[Sym, int], ...], constant: int) -> None:
        """What a comparison says of each of its symbols, given the bounds of the others."""
        bounds = [self.least.get(((s, -1 if c > 0 else 1),)) for s, c in key]
        missing = bounds.count(None)
        if missing > 1:
            return
        total = constant + sum([abs(c) * bound for (_, c), bound in zip(key, bounds, strict=True) if bound is not None])
        for (sym, c), bound in zip(key, bounds, strict=True):
            if bound is None or not missing:
                rest = total - (abs(c) * bound if bound is not None else 0)
                self.bound(rest, {sym: c})


def _cheap(each: tuple[int, int, Sym]) -> tuple[int, int]:
    return each[0], each[1]


def _number(term: tuple[Sym, int]) -> int:
    return id(term[0])


def _none(store: _Store, choices: list[tuple[_Clause, ...]], first: bool = True) -> bool:
    """Whether nothing satisfies `store` with one of each of `choices`. `first`: nothing was tried yet. May raise _Never."""
    while choices:
        left = _settled(store, choices, _fits)
        if left is None:
            return True
        if len(left) == len(choices):
            break
        choices = left
    if not choices:
        return store.empty() or (store.fixed() and store.empty())
    choices.sort(key=len)
    if first and len(choices[-1]) > SOME:  # what is to be shown is many things; facts have few sides
        if store.empty():
            return True
        left = _settled(store, choices[-1:], _may)
        if left is None:
            return True
        return _none(store, [*choices[:-1], *left], False)
    for part in choices[0]:
        store.spent[0] += 1
        if store.spent[0] > MANY:
            return False
        inner, added = store.copy(), choices[1:]
        try:
            inner.take(part, added)
            if not _none(inner, added, False):
                return False
        except _Never:
            pass
    return True


def _settled(
    store: _Store, choices: Sequence[tuple[_Clause, ...]], possible: Callable[[_Store, _Clause], bool]
) -> list[tuple[_Clause, ...]] | None:
    """Choices with what is possible alone. One that is left is taken; None where nothing is. May raise _Never."""
    left: list[tuple[_Clause, ...]] = []
    for choice in choices:
        fitting = tuple([part for part in choice if possible(store, part)])
        if not fitting:
            return None
        if len(fitting) == 1:
            store.take(fitting[0], left)
        else:
            left.append(fitting)
    return left


def _may(store: _Store, part: _Clause) -> bool:
    """Whether an alternative is not impossible by what else is known, choices aside."""
    inner = store.copy()
    try:
        inner.take(part, [])
        return not (inner.empty() or (inner.fixed() and inner.empty()))
    except _Never:
        return False


def _fits(store: _Store, part: _Clause) -> bool:
    """Whether an alternative is not plainly impossible."""
    for row in part.least:
        if not store.allows(*store.reduced(row)):
            return False
    for row in part.equal:
        constant, terms = store.reduced(row)
        if not (store.allows(constant, terms) and store.allows(-constant, {s: -c for s, c in terms.items()})):
            return False
        if terms and constant % gcd(*terms.values()):
            return False
    return all(any(_fits(store, inner) for inner in choice) for choice in part.choices)


def _without(store: _Store, sym: Sym) -> None:
    """Eliminates a symbol. Raises _Never on a contradiction."""
    ups: list[tuple[int, int, dict[Sym, int]]] = []
    downs: list[tuple[int, int, dict[Sym, int]]] = []
    for key, constant in list(store.least.items()):
        terms = dict(key)
        c = terms.pop(sym, 0)
        if c:
            del store.least[key]
            (ups if c > 0 else downs).append((abs(c), constant, terms))
    for a, x, mine in ups:
        for b, y, theirs in downs:
            sums = {s: c * b for s, c in mine.items()}
            for s, c in theirs.items():
                sums[s] = sums.get(s, 0) + c * a
            store.bound(b * x + a * y, {s: c for s, c in sums.items() if c})
